"""The table of symbols is complete over what Numba registers with its compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from numba import _helperlib
from numba.core.runtime import _nrt_python

from dso_packer_numba import symbols

from .both import INCLUDE

NAMES = [
    *(f"numba_{name}" for name in _helperlib.c_helpers),
    *(name if name.startswith("_") else f"NRT_{name}" for name in _nrt_python.c_helpers),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_numba_has_a_row(name: str) -> None:
    """A new release of Numba with a new function is found here."""
    origin = symbols.find(name)
    assert origin is not None
    assert origin != symbols.Refused("it is not known to this release of dso-packer")


def test_unknown_names_are_refused_or_not_numbas() -> None:
    """Python's names need objects; the names of libm are not Numba's."""
    assert isinstance(symbols.find("PyList_New"), symbols.Refused)
    assert isinstance(symbols.find("numba_new_in_0_99"), symbols.Refused)
    assert symbols.find("sin") is None
    assert symbols.files(["PyList_New", "sin"]) == []


def test_each_file_defines_the_symbols_of_its_rows(tmp_path: Path) -> None:
    """Hidden, so that two libraries of a process have separate ones; with both compilers."""
    wanted: dict[str, set[str]] = {}
    for name, origin in symbols._TABLE.items():
        if not isinstance(origin, symbols.Refused):
            wanted.setdefault(origin.file, set()).add(name)
    for index, (file, names) in enumerate(wanted.items()):
        source, output = tmp_path / file, tmp_path / f"{file}.o"
        source.write_text(symbols.source_of(symbols.SUPPORT / file))
        compiler = ("gcc", "clang")[index % 2]
        folders = (f"-I{INCLUDE}", f"-I{symbols.SUPPORT}")
        command = [compiler, "-std=c11", "-c", "-fPIC", *folders, str(source), "-o", str(output)]
        subprocess.run(command, check=True)
        table = subprocess.run(
            ["readelf", "-sW", str(output)], check=True, capture_output=True, text=True
        ).stdout
        rows = [line.split() for line in table.splitlines() if " UND " not in line]
        defined = {row[7] for row in rows if len(row) == 8 and row[5] == "HIDDEN"}
        assert names <= defined, file
