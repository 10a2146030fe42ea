"""Rewrites of graphs."""
