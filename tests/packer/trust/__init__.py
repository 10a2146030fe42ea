"""Tests of packer.trust."""
