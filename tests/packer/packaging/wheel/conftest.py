"""Fixtures of the tests of wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer

from .installation import fresh_environment, install, runtime_wheel

SOURCE = """
#include <math.h>
#include <stdint.h>

double mean(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return n ? sum / n : 0;
}

double root(double x) { return sqrt(x); }
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """A library with two functions."""
    module = packer.CSourceModule(SOURCE, functions="auto")
    path = tmp_path_factory.mktemp("library") / "model.so"
    return packer.export_library(module, path, options=["-lm"])


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> Path:
    """The interpreter of a fresh environment with the runtime alone."""
    folder = tmp_path_factory.mktemp("environment")
    python = fresh_environment(folder / "venv")
    install(python, "--no-deps", runtime_wheel(folder))
    return python
