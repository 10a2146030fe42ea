"""Declarations of exported functions, and the C text that they become."""
