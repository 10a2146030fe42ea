"""Targets of whole libraries that are read, not run: headers, notes, signatures and bills."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from elftools.elf.elffile import ELFFile
from hypothesis import strategies as st

import packer
import runtime
from packer.inspect import open_library
from packer.trust.sbom.read import read_sbom
from packer.trust.sign import sign_library
from packer.trust.sign.keys import create_keys
from runtime.abi import BUNDLE, SBOM
from runtime.trust.room import find_room
from runtime.trust.verify import verify_file

from ..support.signing import library
from .edited_inputs import Seed, binary, json_texts
from .judge import Target
from .reading import in_file, of_seeds

NOTES = (".note.package", ".note.gnu.property", ".note.gnu.build-id")
TABLES = (".dynamic", ".dynsym", ".gnu.hash", ".gnu.version", ".gnu.version_r", *NOTES)
HEADERS = 64 + 12 * 56  # of the file and of its segments


def library_targets(folder: Path) -> list[Target]:
    """One library with a note, a bill of materials and an embedded signature."""
    home = folder / "libraries"
    home.mkdir()
    path = library(
        home / "model.so",
        output=packer.Output(sbom=True, signature_room=4096, metadata={"version": "1.2"}),
    )
    key, public = create_keys(home / "acme")
    statement = sign_library(path, key, embed=True).statement

    def verify(file: Path) -> None:
        assert verify_file(file, [public], name=statement.name) == statement

    data, fed = path.read_bytes(), home / "fed.so"
    return [
        of_seeds("library", [Seed(data, _numbers(path))], in_file(fed, look)),
        room_target(data, fed, verify),
        sbom_target(path, data, fed),
    ]


def look(path: Path) -> None:
    """Read all that a library has; nothing of it runs."""
    open_library(path)
    runtime.open_data(path)
    find_room(str(path), memoryview(path.read_bytes()))
    read_sbom(path)


def room_target(data: bytes, fed: Path, verify: Callable[[Path], None]) -> Target:
    """Edited signatures inside the file: the rest of it is as it was."""
    start, nbytes = _place(data, fed, BUNDLE)
    signature = data[start : start + nbytes].rstrip(b"\0")

    def spliced(inner: bytes) -> bytes:
        return data[:start] + inner[:nbytes].ljust(nbytes, b"\0") + data[start + nbytes :]

    inputs = binary([Seed(signature), Seed(signature + bytes(8))]).map(spliced)
    return Target("room", inputs, [data], in_file(fed, verify))


def sbom_target(path: Path, data: bytes, fed: Path) -> Target:
    """Edited bills of the right length."""
    start, nbytes = _place(data, fed, SBOM)

    def spliced(text: bytes) -> bytes:
        return data[:start] + text[: nbytes - 1].ljust(nbytes - 1) + data[start + nbytes - 1 :]

    inputs: st.SearchStrategy[bytes] = json_texts([read_sbom(path)]).map(spliced)
    return Target("sbom", inputs, [data], in_file(fed, read_sbom))


def _place(data: bytes, file: Path, symbol: str) -> tuple[int, int]:
    """Where the bytes of a symbol are in the file."""
    from runtime._core import ElfFile

    file.write_bytes(data)
    found = ElfFile(str(file)).data(symbol)
    assert found is not None
    return found


def _numbers(path: Path) -> tuple[tuple[int, int], ...]:
    """Where the numbers of headers, tables and notes are."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        found = [elf.get_section_by_name(name) for name in TABLES]
        areas = [(s["sh_offset"], s["sh_size"]) for s in found if s is not None]
        areas += [(0, HEADERS), (elf["e_shoff"], elf["e_shnum"] * elf["e_shentsize"])]
    return tuple((at, 4) for start, size in areas for at in range(start, start + size - 3, 4))
