"""Tests of runtime.trust.hardening."""
