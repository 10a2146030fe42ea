"""Files that cannot be used, and functions that are refused: in words, with file and line."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from runtime.error import ExportError
from tests.support.command_line import COMMAND


def _file(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(f"from numba import njit\n{text}")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x = 1\ny = x / 0\n",
            r"script.py:3: raised ZeroDivisionError on import: division by zero",
        ),
        ("def f(:\n", r"script.py:2: raised SyntaxError on import"),
        ("import nothing_of_this_name\n", r"script.py:2: raised ModuleNotFoundError on import"),
        ("raise SystemExit(3)\n", r"script.py:2: raised SystemExit on import: 3"),
        ("import os\nos._exit(4)\n", r"ended with code 4, expected an answer"),
        ("x = 1\n", r"script.py: has no function of @njit, @vectorize"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The line is that of the file."""
    with pytest.raises(ExportError, match=message):
        packer.from_numba(_file(tmp_path, text))


def test_a_file_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    """The message has the line that runs."""
    path = _file(tmp_path, "import time\nwhile True:\n    time.sleep(0.01)\n")
    started = time.monotonic()
    with pytest.raises(ExportError, match=r"is not imported after 1.5 s, it runs line 4; move"):
        packer.from_numba(path, timeout=1.5)
    assert time.monotonic() - started < 60


_REFUSED = """
import numpy as np


@njit
def no_signature(x):
    return x


@njit("int64(int64)")
def fine(x):
    return x + 1


@njit("int64(int64)")
def prints(x):
    y = x + 1
    print(y)
    return y


@njit("int64(int64)")
def untyped(x):
    return x.nothing


@njit("int64(int64, int64)")
def mutable(x, y=[]):
    return x


@njit("int64(int64, int64)")
def rest(x, *more):
    return x


@njit("float64(int64)")
def frozen(i):
    return TABLE[i]


@njit
def lists(n):
    return [n]


TABLE = np.arange(3.0)
"""


def test_a_file_may_call_its_functions_on_import(tmp_path: Path) -> None:
    """Then they are compiled for that process too; so are the loops of a ufunc."""
    text = """
from numba import vectorize


@njit("int64(int64)")
def inner(x):
    return x + 1


@njit("int64(int64)")
def outer(x):
    return inner(x) * 2


@vectorize(["int64(int64)"])
def each(x):
    return inner(x)


assert outer(2) == 6 and each(1) == 2
"""
    module = packer.from_numba(_file(tmp_path, text))
    loaded = runtime.load(packer.export_library(module, tmp_path / "script.so"))
    assert (loaded["inner"](1), loaded["outer"](2), loaded["each"](1)) == (2, 6, 2)


def test_functions_of_a_file_that_are_refused_are_listed(tmp_path: Path) -> None:
    """The others are exported; a frozen array has a note."""
    path = _file(tmp_path, _REFUSED)
    module = packer.from_numba(path, functions={})
    lines = path.read_text().splitlines()
    at = {text: 1 + lines.index(text) for text in lines}
    left_out: dict[str, Any] = module.left_out
    assert set(left_out) == {"no_signature", "prints", "untyped", "mutable", "rest", "lists"}
    assert "no signature; name one" in left_out["no_signature"]
    assert left_out["prints"].startswith(f"script.py:{at['    print(y)']}: print needs Python;")
    assert left_out["untyped"].startswith(f"script.py:{at['    return x.nothing']}: ")
    assert "default y=[], expected a number, str or None" in left_out["mutable"]
    assert "*more, expected named parameters" in left_out["rest"]
    assert any("frozen: a global array" in note for note in module.notes)
    loaded = runtime.load(packer.export_library(module, tmp_path / "script.so"))
    assert loaded["fine"](1) == 2
    assert loaded["frozen"](2) == 2.0


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"prints": "int64(int64)"}, r"prints: cannot be exported: script.py:\d+: print needs"),
        ({"lists": "int64(int64)"}, "lists: cannot be exported: script.py"),
        ({"fine": "int64("}, r"fine: signature 'int64\(', expected one such as"),
        ({"missing": "int64(int64)"}, "has no function 'missing'"),
    ],
)
def test_a_named_function_that_is_refused_ends_the_import(
    tmp_path: Path, functions: dict[str, str], message: str
) -> None:
    """It was asked for."""
    with pytest.raises(ExportError, match=message):
        packer.from_numba(_file(tmp_path, _REFUSED), functions=functions)


def test_an_unknown_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the versions that are known to work."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.99.0")
    with pytest.raises(ExportError, match=r"numba 0.99.0: .*0.67.*0.68.1.*--force"):
        packer.from_numba(lambda x: x, "int64(int64)")


_EXTERNAL = """
from numba import types

absent = types.ExternalFunction("no_library_has_this", types.int64(types.int64))


@njit("int64(int64)")
def calls(x):
    y = x + 1
    return absent(y)


@njit("int64(int64)")
def fine(x):
    return x
"""


def test_the_function_that_is_compiled_is_told(tmp_path: Path) -> None:
    """Also in an export for levels, which compiles it again; an export that is long shows it."""
    path = _file(tmp_path, '@njit("int64(int64)")\ndef one(x):\n    return x\n')
    steps: list[str] = []
    module = packer.from_numba(path, progress=steps.append)
    assert steps == [f"import {path.name}", "compile one (1 of 1)"]
    packer.export_library(
        module, tmp_path / "script.so", build=packer.Build(cpu=["x86-64-v2", "x86-64-v3"])
    )
    assert steps[2:] == [f"compile one for x86-64-v{level} (1 of 1)" for level in (2, 3)]
    words = [*COMMAND, "export", str(tmp_path / "other.so"), "--numba", str(path), "--verbose"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert "packer: compile one (1 of 1)\n" in done.stderr


def test_a_symbol_that_no_library_defines_is_found_at_export(tmp_path: Path) -> None:
    """With the line that needs it; the other functions do not."""
    path = _file(tmp_path, _EXTERNAL)
    line = 1 + path.read_text().splitlines().index("    return absent(y)")
    message = f"script.py:{line}: no library defines no_library_has_this"
    with pytest.raises(ExportError, match=re.escape(f"calls: cannot be exported: {message}")):
        packer.from_numba(path, only=["calls"])
    module = packer.from_numba(path)
    assert module.left_out == {"calls": message}
    loaded = runtime.load(packer.export_library(module, tmp_path / "script.so"))
    assert loaded["fine"](3) == 3


_ALONE = """
import sys, time
for name in ("numba", "llvmlite", "numpy"):
    sys.modules[name] = None
started = time.perf_counter()
import runtime
from array import array
module = runtime.load(sys.argv[1])
assert module["dist"](array("d", [3.0, 4.0])) == 5.0
print(time.perf_counter() - started)
"""


def test_a_library_runs_without_numba_and_needs_no_symbol_of_it(values_library: Path) -> None:
    """Every symbol that it needs is one of the C library."""
    words = [sys.executable, "-P", "-c", _ALONE, str(values_library)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    from elftools.elf.elffile import ELFFile

    with values_library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        needed = {s.name for s in symbols if s["st_shndx"] == "SHN_UNDEF" and s.name}
    assert not [n for n in needed if n.startswith(("Py", "_Py", "numba", "NRT", "nb_", "."))]


def test_the_command_line_exports_a_file_for_levels(tmp_path: Path) -> None:
    """A signature is an option; each level has its code."""
    path = _file(tmp_path, "@njit\ndef double(x):\n    return x + x\n")
    library = tmp_path / "script.so"
    words = [*COMMAND, "export", str(library), "--numba", str(path)]
    words += ["--signature", "double=float64(float64)", "--cpu", "x86-64-v2,x86-64-v3"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert runtime.load(library)["double"](1.5) == 3.0
    assert b"packer-cpu 1\nlevels x86-64-v2 x86-64-v3" in library.read_bytes()
