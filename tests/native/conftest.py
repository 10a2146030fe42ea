"""Fixtures of the tests of calls: a library of a test file's C source, and its functions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runtime
from runtime._core import Function, Library

from ..support.libdso import compile_shared
from ..support.paths import C_SOURCES
from .plain_library import ADD, CompileLibrary


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest, compile_library: Callable[..., Path]) -> Library:
    """The compiled C file that the test file names in SOURCE."""
    source = C_SOURCES / request.module.SOURCE
    return Library(str(compile_library(source.read_text())))


@pytest.fixture(scope="module")
def probe(library: Library) -> Callable[[str], Function]:
    """Look a function of the library up."""

    def look_up(name: str) -> Function:
        function = library.function(name, None)
        assert function is not None
        return function

    return look_up


@pytest.fixture(scope="session")
def launch_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """launch_probe.c, with the parts of the core that it calls."""
    output = tmp_path_factory.mktemp("pool") / "pool.so"
    return compile_shared(C_SOURCES / "launch_probe.c", output)


@pytest.fixture
def register_func() -> Iterator[Callable[..., None]]:
    """Register global functions for one test."""
    from runtime import registry

    names: list[str] = []

    def register(name: str, function: Callable[..., Any]) -> None:
        runtime.register_func(name, override=True)(function)
        names.append(name)

    yield register
    for name in names:
        registry._functions.pop(name, None)
    registry.tree_changed()


@pytest.fixture
def library_file(compile_library: CompileLibrary, tmp_path: Path) -> Path:
    """A fresh copy of a small library whose `answer` is 1."""
    return Path(shutil.copy(compile_library(ADD, "-DANSWER=1"), tmp_path / "lib.so"))
