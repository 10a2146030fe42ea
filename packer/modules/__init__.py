"""Module types of host code: what an export compiles and links into the library."""
