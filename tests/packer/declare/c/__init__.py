"""Tests of the reading of C."""
