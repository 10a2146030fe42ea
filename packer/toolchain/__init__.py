"""Compilers and linkers, the formats of their outputs, and the checks of those."""
