"""[library] version, license, metadata and soname of packer.toml."""

from __future__ import annotations

import pytest

import packer
import runtime
from packer.project import read_project

from .projects import HOST, refusal


def test_keys_become_the_metadata_of_the_library(folder) -> None:
    """Version and license first, then the table in its order."""
    (folder / "packer.toml").write_text(
        '[library]\nlicense = "MIT"\nversion = "1.0"\n'
        'metadata = { z = [1, 2.5], a = { on = true } }\nsoname = "libadd.so.1"\n' + HOST
    )
    project = read_project(folder / "packer.toml")
    expected = {"version": "1.0", "license": "MIT", "z": [1, 2.5], "a": {"on": True}}
    assert list(project.metadata.items()) == list(expected.items())
    assert project.soname == "libadd.so.1"
    made = packer.export_library(
        project.root, folder / "a.so", output=packer.Output(metadata=project.metadata)
    )
    assert runtime.load(made).metadata == expected


def test_without_keys_there_is_none(folder) -> None:
    """As in a project of older versions."""
    (folder / "packer.toml").write_text(HOST)
    project = read_project(folder / "packer.toml")
    assert (dict(project.metadata), project.soname) == ({}, None)


MISTAKES = {
    "version": ("version = 1.0", "[library] version: expected a string, found 1.0"),
    "empty": ('license = ""', "[library]: metadata: license: expected text, found ''"),
    "table": ("metadata = 3", "[library] metadata: expected a table, found 3"),
    "version inside": (
        'metadata = { version = "1" }',
        "[library.metadata] version: expected version in [library], not in its metadata",
    ),
    "date": (
        "metadata = { trained = { on = 2026-01-02 } }",
        "[library]: metadata: trained.on: expected text, a number, true, false, a list or a table, "
        "found datetime.date(2026, 1, 2)",
    ),
    "infinity": ("metadata = { a = inf }", "a: expected a finite number, found inf"),
    "soname": ("soname = 3", "[library] soname: expected a string, found 3"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_name_their_place(folder, case) -> None:
    """File, table and key."""
    line, text = MISTAKES[case]
    assert text in refusal(folder, f"[library]\n{line}\n{HOST}")
