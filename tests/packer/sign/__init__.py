"""Tests of packer.sign."""
