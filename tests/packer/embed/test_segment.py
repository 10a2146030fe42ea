"""The blob in a PT_LOAD segment: every linker, and link options."""

from __future__ import annotations

import re
import subprocess

import pytest

import packer

from ...support import needs
from ...support.elf_poke import Elf
from .segments import DATA, complaints, host, works


def test_blob_is_in_a_separate_read_only_segment(linked) -> None:
    """The last PT_LOAD, on a page of x86-64 (4 KiB); the number of headers is the same."""
    path, before = linked
    elf, old = Elf(path.read_bytes()), Elf(before.read_bytes())
    last = elf.programs("LOAD")[-1]
    assert elf.peek(last, "p_flags") == 4
    assert elf.peek(last, "p_align") == 4096
    assert elf.peek(last, "p_vaddr") % 4096 == elf.peek(last, "p_offset") % 4096 == 0
    assert elf.peek(last, "p_offset") - before.stat().st_size < 4096
    assert elf.peek(last, "p_vaddr") == elf.peek(elf.symbol("__tvm_dev_mblob"), "st_value")
    assert elf.peek(elf.header, "e_phnum") == old.peek(old.header, "e_phnum")
    assert len(elf.programs("LOAD")) == len(old.programs("LOAD")) + 1
    assert DATA in path.read_bytes()[elf.peek(last, "p_offset") :]


def test_loads_and_calls(linked) -> None:
    """A library of any linker loads."""
    assert works(linked[0])


def test_debuggers_still_find_the_build_id(linked) -> None:
    """Its PT_NOTE is there, also where the linker gave all notes one entry."""
    elf = Elf(linked[0].read_bytes())
    notes = [(elf.peek(n, "p_offset"), elf.peek(n, "p_filesz")) for n in elf.programs("NOTE")]
    assert any(b"GNU\0" in elf.data[offset : offset + size] for offset, size in notes)


def test_lint_finds_nothing_that_the_linkers_own_output_lacks(linked) -> None:
    """Outside tools read it without complaint."""
    needs.program("eu-elflint")
    path, before = linked
    assert complaints(path) <= complaints(before) | {"No errors"}
    for command in (["readelf", "-aW"], ["objdump", "-x"], ["nm"], ["nm", "-D"]):
        run = subprocess.run([*command, path], capture_output=True, text=True, check=True)
        assert run.stderr == ""
        assert "Warning" not in run.stdout


OPTIONS = [
    "-Wl,--gc-sections",
    "-flto",
    "-s",
    "-Wl,--build-id=none",
    "-Wl,-z,max-page-size=65536",
    "-Wl,-z,noseparate-code",
    "-Wl,-z,ibt,-z,shstk",
]


@pytest.mark.parametrize("option", OPTIONS)
def test_link_option_leaves_the_way(option, tmp_path) -> None:
    """The segment works with garbage collection, LTO, other layouts, and no build id."""
    assert works(
        packer.export_library(
            host(), tmp_path / "lib.so", options=[option], build=packer.Build(embed="segment")
        )
    )


def test_all_symbols_move_with_the_placeholder(tmp_path) -> None:
    """In .symtab as in .dynsym, and the section's own symbol."""
    path = packer.export_library(host(), tmp_path / "lib.so", build=packer.Build(embed="segment"))
    listed = subprocess.run(["readelf", "-sSW", path], capture_output=True, text=True, check=True)
    section = re.search(r"\[ *(\d+)\] \.packer\.blob +PROGBITS +(\w+)", listed.stdout)
    assert section is not None
    symbols = [line.split() for line in listed.stdout.splitlines()]
    inside = [s for s in symbols if len(s) > 6 and s[6] == section[1] and s[0].endswith(":")]
    blob = [s[1] for s in inside if s[-1] == "__tvm_dev_mblob"]
    assert blob == [section[2]] * 2
    assert all(int(s[1], 16) >= int(section[2], 16) for s in inside)
