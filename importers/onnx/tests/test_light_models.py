"""Published networks that the package onnx has; `make test-onnx` compares all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .light_models import NAMES, NEAR, difference


def test_there_are_nine() -> None:
    """The sample is of these."""
    assert len(NAMES) == 9
    assert {"shufflenet", "squeezenet"} <= set(NAMES)


@pytest.mark.parametrize("name", ["shufflenet", "squeezenet"])
def test_a_published_network_has_the_results_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    """Groups with shuffled channels, and joined channels."""
    assert difference(name, tmp_path) <= NEAR
