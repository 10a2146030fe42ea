"""Encrypted entries of a blob: their header, the keys, and the memory that they decrypt into."""
