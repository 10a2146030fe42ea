"""Linkers that leave no place for the segment: another embedder, or an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import packer
import runtime

from ...support.elf_poke import Elf
from .segments import host, works


def discarding(what: str, folder: Path) -> list[str]:
    """Options for GNU ld that drop a section."""
    script = folder / "discard.ld"
    script.write_text(f"SECTIONS {{ /DISCARD/ : {{ *({what}) }} }} INSERT AFTER .text;\n")
    return ["-fuse-ld=bfd", f"-Wl,-T,{script}"]


def renaming(folder: Path) -> list[str]:
    """Options for GNU ld that put the placeholder into a section of another name."""
    script = folder / "rename.ld"
    script.write_text("SECTIONS { .other : { *(.packer.blob) } } INSERT AFTER .rodata;\n")
    return ["-fuse-ld=bfd", f"-Wl,-T,{script}"]


@pytest.mark.parametrize("way", ["note", "section"])
def test_linker_that_leaves_no_place_falls_back_with_a_message(way, tmp_path) -> None:
    """By "auto" it is linked again with the next embedder; note and section are both needed."""
    options = discarding(".note.packer", tmp_path) if way == "note" else renaming(tmp_path)
    steps: list[str] = []
    path = packer.export_library(
        host(), tmp_path / "lib.so", options=options, progress=steps.append
    )
    assert works(path)
    place = steps.index("place")
    assert "embed 'segment' is not possible: the linker wrote no" in steps[place + 1]
    assert steps[place + 2 :] == ["embed", "link", "verify", "commit"]


def test_fallback_is_reported_only_with_v(tmp_path) -> None:
    """The command line does not mention it otherwise: the library is equivalent."""
    (tmp_path / "add.c").write_text("long add(long a, long b) { return a + b; }")
    (tmp_path / "w.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    options = [f"--option={option}" for option in discarding(".note.packer", tmp_path)]
    command = [sys.executable, "-m", "packer", "export", "lib.so", "add.c", *options]
    command += ["--function=add=long(long, long)", "--weights=w.safetensors"]
    quiet, verbose = (
        subprocess.run([*command, *v], cwd=tmp_path, capture_output=True, text=True, check=True)
        for v in ([], ["-v"])
    )
    assert quiet.stderr == ""
    said = "packer: embed 'segment' is not possible: the linker wrote no PT_NOTE for section"
    assert said in verbose.stderr
    assert runtime.load(tmp_path / "lib.so")["add"](40, 2) == 42


def test_linker_that_leaves_no_place_is_an_error_for_embed_segment(tmp_path) -> None:
    """The error has the reason and the fix."""
    options = discarding(".note.packer", tmp_path)
    text = "the linker wrote no PT_NOTE for section .note.packer; use embed='llvm'"
    with pytest.raises(packer.ToolchainError, match=text):
        packer.export_library(
            host(), tmp_path / "lib.so", options=options, build=packer.Build(embed="segment")
        )
    assert not (tmp_path / "lib.so").exists()


def test_library_without_section_headers_falls_back(tmp_path) -> None:
    """A stripped library cannot be rewritten."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        elf = Elf(Path(output).read_bytes())
        for field in ("e_shoff", "e_shnum", "e_shstrndx"):
            elf.poke(elf.header, field, 0)
        Path(output).write_bytes(elf.data)

    text = "segment' is not possible: the linker wrote no section headers"
    with pytest.raises(packer.ToolchainError, match=text):
        packer.export_library(
            host(), tmp_path / "a.so", fcompile=fcompile, build=packer.Build(embed="segment")
        )
    assert works(packer.export_library(host(), tmp_path / "b.so", fcompile=fcompile))


@pytest.mark.parametrize("make", [lambda data: b"", lambda data: data[:3000]], ids=["empty", "cut"])
def test_wrong_linker_output_is_detected_before_the_blob_is_placed(make, tmp_path) -> None:
    """A wrong output of the linker is refused before any byte is placed."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        Path(output).write_bytes(make(Path(output).read_bytes()))

    with pytest.raises(packer.ToolchainError, match="its output is wrong"):
        packer.export_library(
            host(), tmp_path / "lib.so", fcompile=fcompile, build=packer.Build(embed="segment")
        )
