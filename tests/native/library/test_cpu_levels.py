"""__packer_cpu_levels: a load compares the features of the levels with the processor's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import runtime
from runtime._core import ElfFile

from ..plain_library import CompileLibrary

GOOD = "packer-cpu 1\nlevels low high\nfeatures low\nfeatures high f0\nlater words\n"


def library(compile_library: CompileLibrary, record: str, end: str = "") -> Path:
    """Compile a library with a record; the NUL after it is that of C."""
    text = "".join(f"\\{byte:03o}" for byte in record.encode())
    return compile_library(f'const char __packer_cpu_levels[] = "{text}{end}";')


def test_lines_with_other_keys_are_ignored(compile_library, monkeypatch) -> None:
    """A level without features runs everywhere; DSO_CPU may name it, or be empty."""
    path = library(compile_library, GOOD)
    for level in ("low", ""):
        monkeypatch.setenv("DSO_CPU", level)
        runtime.load(path)
        assert ElfFile(str(path)).check_cpu() is None


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("high", "DSO_CPU=high, expected a processor with f0, found one without; choose a lower"),
        ("hig", "DSO_CPU=hig, expected a level of the library: low high; choose one"),
        ("low high", "DSO_CPU=low high, expected a level of the library: low high"),
        ("x" * 50, f"DSO_CPU={'x' * 40}, expected a level"),
    ],
)
def test_forced_level(compile_library, monkeypatch, level, expected) -> None:
    """A feature that the reader does not know counts as absent."""
    path = library(compile_library, GOOD)
    monkeypatch.setenv("DSO_CPU", level)
    for check in (runtime.load, lambda path: ElfFile(str(path)).check_cpu()):
        with pytest.raises(runtime.LibraryLoadError, match=re.escape(expected)) as caught:
            check(path)
        assert caught.value.reason == "cpu"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("", "expected lines of text that a NUL ends"),
        ("packer-cpu 1", "expected lines of text that a NUL ends"),
        ("packer-cpu 1\nlevels a\x1b\n", "expected lines of text that a NUL ends"),
        ("packer-cpu 1\0levels a\n", "expected lines of text that a NUL ends"),
        ("packer-cpu 2\nlevels a\n", "another first line, expected 'packer-cpu 1'; load it with"),
        ("packer-cpu 1\n", "expected the names of levels"),
        ("packer-cpu 1\nlevels\n", "expected the names of levels"),
        ("packer-cpu 1\nlevels a\n", "expected the features of each level"),
        ("packer-cpu 1\nlevels a\nfeatures ab x\n", "expected the features of each level"),
        (
            "packer-cpu 1\nlevels a b\nfeatures a q r\nfeatures b\n",
            "compiled for a, expected a processor with q, found one without; export it with",
        ),
    ],
)
def test_damaged_or_foreign_record(compile_library, record, expected) -> None:
    """Refused before dlopen."""
    path = library(compile_library, record)
    with pytest.raises(runtime.LibraryLoadError, match=re.escape(expected)):
        runtime.load(path)


def test_record_that_is_no_constant_text(compile_library) -> None:
    """A variable of this name is not a record; the checksums of an export list the record."""
    path = compile_library("int __packer_cpu_levels = 1;")
    assert ElfFile(str(path)).check_cpu() is None
