"""Fixtures of the tests of graphs in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

from ...support.graphs import factory, host


@pytest.fixture
def export(tmp_path) -> Callable[..., Path]:
    """A library of a graph, its parameters and its imports; without any the usual operators."""

    def export(
        fields: dict[str, Any], params: dict[str, Any] | None = None, *imports: runtime.Module
    ) -> Path:
        path = tmp_path / "deploy.so"
        packer.export_library(factory(fields, params or {}, *(imports or (host(),))), path)
        return path

    return export
