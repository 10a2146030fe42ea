"""The library that the tests of wrappers call."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.wrapped_library import CODE, FUNCTIONS, SANITIZE, Library, build


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One library with every row of the table."""
    return build(tmp_path_factory.mktemp("product"), CODE, FUNCTIONS, "-w", entry="index")


@pytest.fixture(scope="module", params=[("-std=c11",), SANITIZE], ids=["c11", "ubsan"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The same library for this process, as it is and with undefined behaviour trapped."""
    options = ("-Wno-builtin-declaration-mismatch", *request.param)
    return Library(build(tmp_path_factory.mktemp("glue"), CODE, FUNCTIONS, *options, entry="index"))
