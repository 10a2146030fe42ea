"""Module types of host code, which an export compiles."""
