"""ElfFile: where in the file, and for which machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime._core import ElfFile
from runtime.error import LibraryLoadError

from ..plain_library import SYMBOLS, CompileLibrary


def test_elf_error_has_the_offset_in_the_file(compile_library: CompileLibrary) -> None:
    """A symbol is an offset and a size in the file, without loading it."""
    path = compile_library(SYMBOLS)
    elf = ElfFile(str(path))
    found = elf.symbol("good")
    assert found is not None
    offset, nbytes = found
    assert path.read_bytes()[offset : offset + nbytes] == b"abc\0"
    assert elf.symbol("absent") is None
    with pytest.raises(LibraryLoadError, match=r"zeros at 0x.*is not stored in the file") as caught:
        elf.symbol("zeros")
    assert caught.value.reason == "blob"


def test_elf_file_checks_the_machine(library_file: Path) -> None:
    """The machine is this one unless the caller names another."""
    native = ElfFile(str(library_file)).machine
    assert ElfFile(str(library_file), machine=native).machine == native
    with pytest.raises(LibraryLoadError) as caught:
        ElfFile(str(library_file), 8)
    assert caught.value.reason == "machine"
    with pytest.raises(ValueError, match="machine, expected 0 to 65535, found 65536"):
        ElfFile(str(library_file), 65536)


def test_unbound_symbols_have_no_version_and_are_not_weak(compile_library: CompileLibrary) -> None:
    """The functions of glibc have versions, so that the search is for the others only."""
    source = """
    #include <stdlib.h>
    int foreign(int); extern int variable; __attribute__((weak)) int maybe(void);
    int f(void) { return foreign(abs(variable)) + (maybe ? maybe() : atoi("1")); }
    """
    path = compile_library(source)
    assert sorted(ElfFile(str(path)).unbound()) == ["foreign", "variable"]
