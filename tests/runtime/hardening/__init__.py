"""Tests of runtime.hardening."""
