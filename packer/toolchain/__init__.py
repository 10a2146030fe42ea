"""Compilers, linkers and the kinds of files that they make."""
