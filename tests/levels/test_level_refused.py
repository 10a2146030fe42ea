"""CPU levels that an export refuses, in words."""

from __future__ import annotations

import os
import subprocess

import pytest

import packer

from ..support import needs
from .levels import SOURCE, export

needs.hardware(os.uname().machine == "x86_64", "x86-64")


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        (["x86-64-v9"], "cpu: unknown level 'x86-64-v9' of x86_64; near names: 'x86-64-v4'"),
        (["haswell"], "cpu: unknown level 'haswell' of x86_64; it has: 'native', 'x86-64-v1'"),
        (["x86-64-v2", "x86-64-v2"], "cpu: level 'x86-64-v2' is named twice, expected once"),
        (["native", "x86-64-v2"], "cpu: 'native' with other levels, expected it alone"),
        (["armv8-a"], "cpu: unknown level 'armv8-a' of x86_64"),
    ],
)
def test_names(cpu, expected, tmp_path) -> None:
    """Of levels; nothing is written."""
    with pytest.raises(packer.ExportError, match=expected):
        export(tmp_path, SOURCE, build=packer.Build(cpu=cpu))
    assert not (tmp_path / "model.so").exists()


def test_no_level_is_the_default(tmp_path) -> None:
    """As packer.toml without the key has it."""
    made = {
        export(tmp_path, SOURCE, build=packer.Build(cpu=cpu)).read_bytes() for cpu in (None, (), [])
    }
    assert len(made) == 1
    assert packer.inspect_library(tmp_path / "model.so").cpu is None


@pytest.mark.parametrize(
    ("cpu", "target", "expected"),
    [
        (
            "native",
            "aarch64-linux-gnu",
            "'native' is x86_64, but the target is 'aarch",
        ),
        (["rv64gcv"], "riscv64-linux-gnu", "level 'rv64gcv': riscv64 has no levels; drop it"),
    ],
)
def test_levels_of_another_machine(cpu, target, expected, tmp_path) -> None:
    """The target decides which levels there are."""
    needs.program(f"{target}-gcc")
    with pytest.raises(packer.ExportError, match=expected):
        export(tmp_path, SOURCE, build=packer.Build(cpu=cpu, target=target))


@pytest.mark.parametrize("option", ["-march=haswell", "-mcpu=power9", "-flto"])
def test_processor_in_the_options_of_a_source(option, tmp_path) -> None:
    """Such code would run at a level that it is not for."""
    module = packer.CSourceModule(SOURCE, options=[option])
    with pytest.raises(packer.ExportError, match=f"option '{option}' beside CPU levels.*; drop"):
        packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=["x86-64-v2"]))


def test_link_time_optimisation(tmp_path) -> None:
    """Its objects have no code whose names could be changed."""
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run([needs.program("gcc"), "-flto", "-c", "a.c"], cwd=tmp_path, check=True)
    files = dict.fromkeys(["x86-64-v2", "x86-64-v3"], tmp_path / "a.o")
    module = packer.StaticLibraryModule(files)
    with pytest.raises(packer.ExportError, match="-flto, expected machine code.*; drop -flto"):
        packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=[*files]))


def test_linker_that_compiles_sources(tmp_path) -> None:
    """It would compile them once."""

    def fcompile(output, files, options):
        raise AssertionError

    with pytest.raises(packer.ExportError, match="cpu: fcompile compiles sources, expected"):
        packer.export_library(
            packer.CSourceModule(SOURCE),
            tmp_path / "a.so",
            fcompile=fcompile,
            build=packer.Build(cpu=["x86-64-v2"]),
        )


def test_function_that_no_source_defines(tmp_path) -> None:
    """The message is that of an export without levels."""
    text = "declared, but defined by no source, or as static: missing"
    source = "static int missing(int x) { return x; } int f(void) { return missing(1); }"
    module = packer.CSourceModule(source, functions={"f": "int(void)"})
    other = packer.CSourceModule("", functions={"missing": "int(int x)"})
    module.import_module(other)
    with pytest.raises(packer.ToolchainError, match=text):
        packer.export_library(
            module, tmp_path / "a.so", build=packer.Build(cpu=["x86-64-v2", "x86-64-v3"])
        )


def test_messages_name_the_source(tmp_path) -> None:
    """Not the files of levels."""
    (tmp_path / "mine.c").write_text("int f(void) { return }")
    module = packer.CSourceModule(tmp_path / "mine.c")
    with pytest.raises(packer.ToolchainError, match="compiling .*mine.c") as caught:
        packer.export_library(
            module, tmp_path / "a.so", build=packer.Build(cpu=["x86-64-v2", "x86-64-v3"])
        )
    assert "lib0" not in str(caught.value)


def test_warnings_are_shown_once(tmp_path, capfd) -> None:
    """The compiler would repeat them for each level."""
    source = "int f(void) { int x; return x; }"
    module = packer.CSourceModule(source, options=["-Wall"], functions="auto")
    packer.export_library(
        module, tmp_path / "a.so", build=packer.Build(cpu=["x86-64-v2", "x86-64-v3"])
    )
    assert capfd.readouterr().err.count("-Wuninitialized") == 1
