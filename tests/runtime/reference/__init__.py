"""Pickles by reference."""
