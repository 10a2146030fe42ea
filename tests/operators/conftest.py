"""The operators, compiled once for each level of this machine."""

from __future__ import annotations

import ctypes

import pytest

from ..support import operators


@pytest.fixture(scope="session", params=operators.levels(), ids=lambda option: option or "default")
def library(request, tmp_path_factory) -> ctypes.CDLL:
    """All operators, for one level."""
    operators.require_level(request.param)
    return ctypes.CDLL(operators.build(tmp_path_factory.mktemp("operators"), request.param))
