"""Fixtures of the tests of the segment."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer

from ...support import needs
from .segments import host, keeping_linked


@pytest.fixture(scope="module", params=needs.LINKERS)
def linked(request, tmp_path_factory) -> tuple[Path, Path]:
    """A library by each linker: as it is shipped, and as it was linked."""
    needs.linker(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    path, before = folder / "lib.so", folder / "before.so"
    options = [f"-fuse-ld={request.param}", "-Wl,--build-id"]
    fcompile = keeping_linked(before)
    packer.export_library(
        host(), path, fcompile=fcompile, options=options, build=packer.Build(embed="segment")
    )
    return path, before
