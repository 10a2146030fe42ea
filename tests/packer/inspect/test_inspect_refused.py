"""inspect_library: files of other formats, damaged files, hostile names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from packer.inspect import inspect_library, render
from runtime.error import LibraryLoadError

from ...support.elf_poke import Elf
from .inspected import SAFE_CALL


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty file"),
        (b"hello", "not an ELF shared object"),
        (b"PK\x03\x04" + bytes(99), "ZIP"),
    ],
)
def test_other_formats_are_refused_by_name(data, match, tmp_path) -> None:
    """Other formats are refused by name."""
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(LibraryLoadError, match=match) as caught:
        inspect_library(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [("e_type", 1, "relocatable object"), ("e_type", 2, "executable")],
)
def test_other_kinds_of_elf_are_refused_by_name(
    field, value, match, packed_library, tmp_path
) -> None:
    """The refusal is the same on any machine."""
    for machine in (62, 183):
        elf = Elf(packed_library.read_bytes())
        elf.poke(elf.header, field, value).poke(elf.header, "e_machine", machine)
        (tmp_path / "file").write_bytes(elf.data)
        with pytest.raises(LibraryLoadError, match=match):
            inspect_library(tmp_path / "file")


@pytest.mark.parametrize(("at", "value"), [(4, 1), (5, 2)], ids=["32-bit", "big-endian"])
def test_other_classes_and_byte_orders_are_refused(at, value, packed_library, tmp_path) -> None:
    """No library of the project is 32-bit or big-endian."""
    data = bytearray(packed_library.read_bytes())
    data[at] = value
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(LibraryLoadError, match=r"32-bit|big-endian"):
        inspect_library(tmp_path / "file")


def test_irregular_file_is_refused_without_blocking(tmp_path) -> None:
    """A missing file is refused, too."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo", "/dev/zero", tmp_path / "none", ""):
        with pytest.raises(LibraryLoadError):
            inspect_library(path)
    with pytest.raises(ValueError, match="null"):
        inspect_library("a\0b")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("e_phentsize", 0),
        ("e_phentsize", 65535),
        ("e_phnum", 65535),
        ("e_phoff", 2**64 - 1),
    ],
)
def test_inconsistent_program_headers_are_refused(field, value, packed_library, tmp_path) -> None:
    """A report needs valid program headers."""
    elf = Elf(packed_library.read_bytes())
    elf.poke(elf.header, field, value)
    (tmp_path / "wrong.so").write_bytes(elf.data)
    with pytest.raises(LibraryLoadError, match=r"wrong\.so: "):
        inspect_library(tmp_path / "wrong.so")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("e_shentsize", 0),
        ("e_shentsize", 65535),
        ("e_shnum", 65535),
        ("e_shoff", 2**64 - 1),
    ],
)
def test_inconsistent_section_headers_are_a_problem(field, value, packed_library, tmp_path) -> None:
    """A load does not need them, so the tree is shown."""
    elf = Elf(packed_library.read_bytes())
    elf.poke(elf.header, field, value)
    (tmp_path / "wrong.so").write_bytes(elf.data)
    report = inspect_library(tmp_path / "wrong.so")
    assert len(report.modules) == 3
    assert any("section headers" in p or "e_shentsize" in p for p in report.problems)


def test_terminal_escapes_are_shown_and_not_obeyed(compile_library, tmp_path) -> None:
    """Symbols, sonames, docs and kernels' names are hostile; the JSON is valid."""
    facts = "packer-function 1\\ntype int(int \\033[2Jx)\\ndoc \\302\\233 \\342\\200\\256 red\\n"
    source = (
        SAFE_CALL.format("f")
        + f'const char __packer_fn_f[] = "{facts}";\n'
        + SAFE_CALL.format("hostile")
    )
    made = compile_library(source, "-Wl,-soname,\x1b]0;title\x07")
    path = tmp_path / "hostile.so"  # no assembler takes such a name
    path.write_bytes(made.read_bytes().replace(b"_ffi_hostile", b"_ffi_\x1b[31mx\xff"))
    report = inspect_library(path)
    text = render(report)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "\\x1b]0;title\\x07" in text
    assert "int f(int \\x1b[2Jx)  \\x9b \\u202e red" in text
    assert "\\x1b[31mx\\xff" in text
    again = json.loads(json.dumps(report.to_dict()).encode("ascii"))
    assert again["linkage"]["soname"] == "\x1b]0;title\x07"
    assert "\x1b[31mx\\xff" in [f["name"] for f in again["functions"]]


def test_path_of_any_bytes_works(packed_library, tmp_path) -> None:
    """A name is shown as text that UTF-8 can hold."""
    path = os.fsencode(tmp_path) + b"/\xff $(x)\n\xe2\x80\xae.so"
    Path(os.fsdecode(path)).write_bytes(packed_library.read_bytes())
    for given_path in (path, os.fsdecode(path)):
        report = inspect_library(given_path)
        assert report.path.endswith("/\\xff $(x)\n\u202e.so")
        assert len(report.modules) == 3
        assert render(report).partition("\\xff $(x)\\n\\u202e.so: ")[1]
        json.dumps(report.to_dict(), ensure_ascii=False).encode("utf-8")
