"""Declarations of exported functions, and the C text that is generated from them."""
