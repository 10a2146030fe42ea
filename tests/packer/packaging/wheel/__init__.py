"""Wheels that packer writes, and the hooks of projects that build their own."""
