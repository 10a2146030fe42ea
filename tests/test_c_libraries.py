"""Real libraries of C, used through their headers; tests/stress/c_libraries.py has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from .support import needs
from .support.c_uses import LIBRARIES


@pytest.mark.parametrize("name", ["libpng", "cJSON", "libuv", "expat", "Lua"])
def test_a_library_is_used_through_its_header(name: str, tmp_path: Path) -> None:
    """Structs in place, rows of pixels, kept callbacks and user data, as the library's users do."""
    library = LIBRARIES[name]
    for header in library.headers[:1]:
        needs.header(header, library.package)
    path = packer.export_library(library.module(), tmp_path / "own.so")
    library.use(runtime.load(path), tmp_path)
