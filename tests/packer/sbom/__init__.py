"""Tests of packer.sbom."""
