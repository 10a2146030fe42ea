"""Libraries of Debian, exported from their headers by the command line, and called from NumPy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from .support import needs

PACKAGES = {
    "SAMPLERATE": ("samplerate.h", "libsamplerate0-dev", "True"),
    "ZLIB": ("zlib.h", "zlib1g-dev", "True True"),
    "SQLITE": ("sqlite3.h", "libsqlite3-dev", "[['1', '2'], ['2', '4']]"),
    "CJSON": ("cjson/cJSON.h", "libcjson-dev", "[1.5, 2.0, 3.0]"),
    "EXPAT": ("expat.h", "libexpat1-dev", "['a', 'b']"),
}


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    """The programs of benchmarks/headers.py."""
    path = Path(__file__).parents[1] / "benchmarks" / "headers.py"
    spec = importlib.util.spec_from_file_location("headers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PACKAGES)
def test_a_library_is_exported_from_its_header(
    programs: ModuleType, tmp_path: Path, name: str
) -> None:
    """The program of the user prints the right result, which cffi's prints too."""
    header, package, result = PACKAGES[name]
    needs.header(header, package)
    needs.module("cffi", "test")
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    case = getattr(programs, name)
    assert programs.run_ours(case, tmp_path / "ours") == result
    assert programs.run_program(case.cffi, tmp_path / "theirs") == result
