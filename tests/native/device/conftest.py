"""The FAKE driver, and launches with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.cuda import build_fake_driver, run_with_fake
from .cuda_launch import LAUNCH, PARAMS, TAGS, Fake


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the FAKE driver."""
    return build_fake_driver(tmp_path_factory.mktemp("fake_cuda"))


@pytest.fixture
def launch(fake_driver: Path) -> Fake:
    """``launch(path, tags, *extents, **settings)``: the printed lines, and the FAKE's log."""

    def launch(
        path: Path, tags: str = TAGS, *extents: int, **settings: str
    ) -> tuple[list[str], list[str]]:
        settings = {"devices": "80", "params": PARAMS, **settings}
        return run_with_fake(fake_driver, LAUNCH, path, tags, *(extents or (2, 4)), **settings)

    return launch
