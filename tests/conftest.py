"""What tests of both packages share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .compile import compile_c

CompileLibrary = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory: pytest.TempPathFactory) -> CompileLibrary:
    """``compile_library(source, *options)``: a library of its own; equal calls share the file."""
    made: dict[tuple[str, ...], Path] = {}

    def compile_library(source: str, *options: str) -> Path:
        key = (source, *options)
        if key not in made:
            folder = tmp_path_factory.mktemp("compiled")
            made[key] = compile_c(source, folder / f"lib{len(made)}.so", *options)
        return made[key]

    return compile_library
