"""Tests of packer.trust.sign."""
