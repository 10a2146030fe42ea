"""Which folder of the native core may include which, and that only python/ needs Python."""

from __future__ import annotations

import re

import pytest

from ..support.libdso import archive
from ..support.paths import NATIVE

# From the ground floor up. Each folder may also include itself.
MAY_INCLUDE = {
    "abi": set(),
    "scan": {"abi"},
    "elf": {"abi"},
    "device": {"abi", "elf"},
    "threads": {"abi", "device"},
    "session": {"abi", "device"},
    "vm": {"abi", "device", "session"},
    "library": {"abi", "scan", "elf", "threads"},
    "blob": {"abi", "scan", "device"},
    "graph": {"abi", "scan", "device", "blob"},
    "module": {"abi", "scan", "elf", "device", "vm", "library", "blob"},
    "types": {"abi", "device", "vm", "blob", "graph", "module"},
    "functions": {"abi", "device", "vm", "blob", "module", "types"},
    "dso": {"abi", "scan", "device", "threads", "session", "library", "module"},
    "python": {
        *("abi", "scan", "elf", "device", "threads", "vm", "library", "blob", "graph", "module"),
        *("session", "types"),
    },
}


def test_every_folder_has_a_row() -> None:
    """A new folder is added to the table, at its level."""
    assert {path.name for path in NATIVE.iterdir() if path.is_dir()} == set(MAY_INCLUDE)


def test_rows_point_downward() -> None:
    """A folder may include only folders that precede it: no cycles."""
    floors = list(MAY_INCLUDE)
    for folder, included in MAY_INCLUDE.items():
        assert included <= set(floors[: floors.index(folder)]), folder


@pytest.mark.parametrize("folder", MAY_INCLUDE)
def test_folder_includes_downward_only(folder) -> None:
    """Include lines name the folder; those without one are the public headers."""
    for path in sorted((NATIVE / folder).rglob("*.[ch]")):
        included = set(re.findall(r'#include "(\w+)/', path.read_text()))
        assert included <= MAY_INCLUDE[folder] | {folder}, path


def test_core_outside_python_compiles_without_python() -> None:
    """Python's include path is not given to the compiler."""
    assert archive().exists()


def test_map_lists_every_folder_and_its_arrows() -> None:
    """runtime/native/README.md shows the same table."""
    text = (NATIVE / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ?([^|]*)\|$", text, re.MULTILINE)
    shown = {folder: set(re.findall(r"\w+", arrows)) for folder, arrows in rows}
    assert shown == MAY_INCLUDE
