"""The library that the tests of wrappers call."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support import every_code
from ...support.wrapped_library import CODE, FUNCTIONS, SANITIZE, Library, build, build_declared


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One library with every row of the table."""
    return build(tmp_path_factory.mktemp("product"), CODE, FUNCTIONS, "-w", entry="index")


@pytest.fixture(scope="module", params=[("-std=c11",), SANITIZE], ids=["c11", "ubsan"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The same library for this process, as it is and with undefined behaviour trapped."""
    options = ("-Wno-builtin-declaration-mismatch", *request.param)
    return Library(build(tmp_path_factory.mktemp("glue"), CODE, FUNCTIONS, *options, entry="index"))


@pytest.fixture(scope="module")
def codes_product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with functions of every code."""
    folder = tmp_path_factory.mktemp("codes")
    return build_declared(folder, every_code.CODE, every_code.DECLARATIONS, "-w")


@pytest.fixture(scope="module", params=["c11", "c++17", "ubsan"])
def codes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> every_code.CodesLibrary:
    """The same library for this process; its glue as C and as C++, and with traps."""
    language = {
        "c11": ("-std=c11",),
        "c++17": ("-x", "c++", "-std=c++17", "-fno-exceptions"),
        "ubsan": SANITIZE,
    }[request.param]
    code, declarations = every_code.CODE, every_code.DECLARATIONS
    linked = SANITIZE if language == SANITIZE else ()
    folder = tmp_path_factory.mktemp("codes")
    made = build_declared(folder, code, declarations, "-Wno-attributes", *linked, language=language)
    return every_code.CodesLibrary(made)
