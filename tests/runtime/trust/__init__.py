"""Tests of runtime.trust."""
