"""Levels that an importer asks for: an export without `cpu` has them, or says why not."""

from __future__ import annotations

import os

import pytest

import packer
from packer.levels.note import mark_imported

from ..support import needs
from .levels import SOURCE, export

needs.hardware(os.uname().machine == "x86_64", "x86-64")
ASKED = ("x86-64-v1", "x86-64-v3", "armv8-a", "armv9-a")


def imported(**options) -> packer.CSourceModule:
    """C code, as of an importer that asks for levels."""
    module = packer.CSourceModule(SOURCE, functions="auto", **options)
    mark_imported(module, "the code", levels=ASKED)
    return module


def levels_of(path) -> list[str]:
    """The levels that `packer inspect` shows."""
    found = packer.inspect_library(path).cpu
    return [] if found is None else [*found.levels]


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [(None, ["x86-64-v1", "x86-64-v3"]), ("x86-64-v2", ["x86-64-v2"]), ((), [])],
)
def test_cpu_replaces_what_the_importer_asks_for(cpu, expected, tmp_path, capfd) -> None:
    """Without a note, but for code of no level."""
    path = packer.export_library(imported(), tmp_path / "a.so", build=packer.Build(cpu=cpu))
    assert levels_of(path) == expected
    assert ("is for every x86-64" in capfd.readouterr().err) == (cpu == ())


def test_the_target_decides(tmp_path) -> None:
    """An export uses the names of its target; riscv64 has none."""
    for triple, expected in {
        "aarch64-linux-gnu": ["armv8-a", "armv9-a"],
        "riscv64-linux-gnu": [],
    }.items():
        needs.program(f"{triple}-gcc")
        build = packer.Build(target=triple)
        path = packer.export_library(imported(), tmp_path / f"{triple}.so", build=build)
        assert levels_of(path) == expected


@pytest.mark.parametrize("option", ["-march=x86-64-v2", "-flto"])
def test_an_option_gets_one_level_and_a_note(option, tmp_path, capfd) -> None:
    """Of a source beside the imported one, too."""
    module = imported()
    other = packer.CSourceModule("int one(void) { return 1; }", options=[option])
    module.import_module(other)
    path = packer.export_library(module, tmp_path / "a.so")
    assert levels_of(path) == []
    said = capfd.readouterr().err
    assert f"the code has one CPU level instead of 2: {other!r} has option '{option}'" in said


def test_fcompile_that_compiles_sources_gets_one_level_and_a_note(tmp_path, capfd) -> None:
    """Its sources are compiled once."""

    def fcompile(output, files, options):
        packer.create_shared(output, files, options=options)

    path = packer.export_library(imported(), tmp_path / "a.so", fcompile=fcompile)
    assert levels_of(path) == []
    assert "instead of 2: fcompile compiles sources itself" in capfd.readouterr().err


def test_a_compiler_without_the_options_gets_one_level_and_a_note(
    tmp_path, capfd, monkeypatch
) -> None:
    """It is asked by an empty source."""
    compiler = tmp_path / "cc"
    refuse = 'case "$*" in *x86-64-v3*) echo "unknown -march" >&2; exit 1; esac'
    compiler.write_text(f'#!/bin/sh\n{refuse}\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    path = packer.export_library(imported(), tmp_path / "a.so")
    assert levels_of(path) == []
    said = capfd.readouterr().err
    assert "instead of 2: the compiler does not compile for x86-64-v3" in said


def test_code_that_no_importer_marked_has_no_levels(tmp_path) -> None:
    """As ever."""
    assert levels_of(export(tmp_path, SOURCE, build=packer.Build())) == []
