"""Tests of packer.packaging."""
