"""Fixtures of the tests of graphs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import packer
import runtime

from ...support.graphs import host


@pytest.fixture(scope="module")
def operators(tmp_path_factory) -> runtime.Module:
    """A library with the operators alone."""
    path = tmp_path_factory.mktemp("operators") / "operators.so"
    packer.export_library(host(), path)
    return runtime.load(path)


@pytest.fixture
def create(operators) -> Callable[..., runtime.GraphExecutor]:
    """``create(fields)``: an executor of a graph over these operators."""
    return lambda fields: runtime.graph_executor.create(json.dumps(fields), operators)
