"""Large bytes as a C array and as LLVM IR."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import packer
from packer.embed.c import array_text
from packer.embed.llvm import incbin_lines
from runtime.serial.stream import FileRange

from .segments import Weights


def test_array_that_no_compiler_takes_is_refused_at_once(tmp_path) -> None:
    """embed="c" names the other embedders."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(packer.ExportError, match="use embed='segment' for a library, or"):
        packer.export_library(Weights(big), tmp_path / "lib.so", build=packer.Build(embed="c"))


def test_array_is_written_as_it_is_read(tmp_path) -> None:
    """The text of 1 TiB begins at once, and in little memory."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(1 << 40)
    lines = array_text("blob", [FileRange(str(big), 0, 1 << 40)])
    begun = "".join(itertools.islice(lines, 10))
    assert f"blob[{1 << 40}] = {{\n  0x0,0x0," in begun
    assert len(begun) < 1000


@pytest.mark.parametrize(("nbytes", "way"), [(1 << 19, "constant"), (1 << 21, "incbin")])
def test_llvm_takes_large_bytes_from_a_file(nbytes, way, tmp_path) -> None:
    """Payloads beyond 1 MiB do not become text."""
    source = tmp_path / "weights"
    source.write_bytes(os.urandom(nbytes))
    path = tmp_path / "lib.so"
    packer.export_library(
        Weights(source), path, workspace_dir=tmp_path, build=packer.Build(embed="llvm")
    )
    kept = list(tmp_path.glob("packer-*/__tvm_dev_mblob.bin"))
    assert len(kept) == (way == "incbin")
    assert source.read_bytes() in path.read_bytes()


def test_large_sections_are_laid_out_last() -> None:
    """Beyond 1 GiB: 32-bit references need not reach over them; in pieces that GNU as accepts."""
    nbytes = (1 << 31) + 1
    section, *_, first, second, third = incbin_lines("w", Path("f"), nbytes, "x86_64-linux-gnu")
    assert section == '.section .lrodata,"al",@progbits'
    pieces = [line.removeprefix('.incbin "f",').split(",") for line in (first, second, third)]
    assert [int(offset) for offset, _ in pieces] == [0, 1 << 30, 1 << 31]
    assert sum(int(size) for _, size in pieces) == nbytes
