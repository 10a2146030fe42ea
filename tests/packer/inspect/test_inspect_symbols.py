"""inspect_library: the dynamic and static symbols, against nm and readelf."""

from __future__ import annotations

from pathlib import Path

import pytest

from packer.inspect import inspect_library

from .inspected import tool


def readelf_symbols(path: Path, option: str) -> list[tuple[str, int, str, str]]:
    """(name, size, type, bind) of a table, sections and unnamed ones left out."""
    lines = [line.split() for line in tool("readelf", option, "-W", path)]
    lines = lines[[line[:1] for line in lines].index(["Num:"]) + 1 :] if lines else []
    rows = [f for f in lines if len(f) >= 8 and f[0][:-1].isdigit() and f[3] != "SECTION"]
    return [(f[7].partition("@")[0], int(f[2], 0), f[3], f[4]) for f in rows]


def test_static_symbols_agree_with_readelf(compile_library) -> None:
    """Local functions are listed too."""
    path = compile_library("static int hidden(int x) { return x; } int (*f)(int) = hidden;")
    symbols = [s for s in inspect_library(path).symbols.static if s.type != "SECTION"]
    assert "hidden" in [s.name for s in symbols]
    rows = readelf_symbols(path, "--symbols")
    at = len(readelf_symbols(path, "--dyn-syms"))
    assert [(s.name, s.size, s.type, s.bind) for s in symbols if s.name] == rows[at:]


def test_symbols_of_a_library_that_exports_nothing(compile_library) -> None:
    """Its hash table is empty: the section knows the undefined ones, or the relocations do."""
    source = 'extern int puts(const char *); static int f(void) { return puts(""); }'
    path = compile_library(f"{source} static int (*volatile g)(void) = f;", "-fvisibility=hidden")
    names = [s.name for s in inspect_library(path).symbols.dynamic]
    assert names == [name for name, *_ in readelf_symbols(path, "--dyn-syms")]


def test_symbols_can_be_picked_by_index_and_slice(packed_library) -> None:
    """A table is a sequence."""
    symbols = inspect_library(packed_library).symbols.dynamic
    listed = list(symbols)
    assert (symbols[0], symbols[-1], symbols[1:3]) == (listed[0], listed[-1], listed[1:3])
    with pytest.raises(IndexError):
        symbols[len(symbols)]
