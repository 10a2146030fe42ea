"""inspect_library(path): what is in a library, read from its bytes; nothing of it is ever run.

What a load would use is read the way a load finds it, through the program headers; sections
only serve for the static symbols. Whatever can be read is shown, and what is wrong is said.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from runtime._core import ElfFile
from runtime.abi import BLOB_SYMBOLS, FACT_PREFIX, HEADER_NBYTES, MAIN_NAME, MANIFEST
from runtime.error import LibraryLoadError

from ..elf.dynamic import Dynamic
from ..elf.image import Image
from ..elf.section_table import read_static_symbols
from .functions import MAX_FUNCTIONS, read_entry, read_functions
from .report import (
    Blob,
    Constructor,
    Entry,
    Field,
    Function,
    Hardening,
    LibraryReport,
    Linkage,
    Module,
    Symbols,
    Tensor,
    VersionNeed,
)
from .startup import read_constructors
from .text import render
from .tree import find_carried_libraries, find_duplicates, read_blob, verify_checksums

if TYPE_CHECKING:
    import runtime
    from runtime.blob import Blob as ParsedBlob

    from ..elf.symbol_table import SymbolTable

__all__ = [
    "Blob",
    "Constructor",
    "Entry",
    "Field",
    "Function",
    "Hardening",
    "LibraryReport",
    "Linkage",
    "Module",
    "OpenedLibrary",
    "Symbols",
    "Tensor",
    "VersionNeed",
    "inspect_library",
    "open_library",
    "read_dynamic",
    "render",
]


@dataclass(frozen=True, slots=True)
class OpenedLibrary:
    """A library that was looked into.

    Attributes
    ----------
    report : LibraryReport
        What is known about it.
    data : memoryview
        The whole file; the view keeps the map.
    parsed : runtime.blob.Blob or None
        The blob taken apart; None where there is none, or it cannot be read.
    root : runtime.Module or None
        The tree; ``"library"`` stands for the host code, which is not loaded.
    """

    report: LibraryReport
    data: memoryview
    parsed: ParsedBlob | None
    root: runtime.Module | None

    @property
    def body(self) -> memoryview:
        """The blob behind its 8-byte header."""
        blob = self.report.blob
        if blob is None or blob.offset is None:
            return memoryview(b"")
        return self.data[blob.offset + HEADER_NBYTES : blob.offset + blob.nbytes]


# The native check's verdicts on a file that is no 64-bit ELF shared object: nothing to look into.
_FOREIGN = ("io", "not-a-file", "not-elf", "format")
_E_MACHINE = slice(18, 20)  # gABI, ELF Header


def inspect_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> LibraryReport:
    """Look into a library without loading it.

    Parameters
    ----------
    path : path
        Any 64-bit little-endian ELF shared object, of any machine, stripped or not.

    Returns
    -------
    LibraryReport
        ``report.problems`` says what would stop a load, and what could not be read.

    Raises
    ------
    LibraryLoadError
        The file is no such object, or its program headers cannot be read.

    Examples
    --------
    >>> report = packer.inspect_library("model.so")  # doctest: +SKIP
    >>> [function.signature for function in report.functions]  # doctest: +SKIP
    ['int64_t add(int64_t a, int64_t b)']
    """
    return open_library(path).report


def open_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> OpenedLibrary:
    """Look into a library as `inspect_library` does, and keep what it carries at hand.

    Returns
    -------
    OpenedLibrary
        The report, with the modules and bytes that it is about.

    Raises
    ------
    LibraryLoadError
        As of `inspect_library`.
    """
    name = os.fspath(path)
    problems: list[str] = []
    notes: list[str] = []

    native, checked, refusal = _check(name)
    try:
        image = Image(_map(name), _shown(name), problems)
    except LibraryLoadError as error:
        raise refusal or error from None  # the native check says it better
    # From here on every segment is known, and no read leaves the file.
    if refusal is not None:
        problems.append(f"a load would refuse it: {_without_path(refusal)}")

    dynamic = Dynamic(image)
    symbols = Symbols(dynamic.symbols, read_static_symbols(image, dynamic, notes))
    functions = read_functions(image, dynamic.symbols)
    entry = read_entry(image, dynamic.symbols)
    tree = read_blob(image, dynamic.symbols, [function.name for function in functions], notes)
    if checked is not None:
        problems.extend(_compare(checked, tree.blob))
        problems.extend(_find_unreadable(checked, dynamic.symbols))
        verify_checksums(checked, image, dynamic.symbols, tree)
    notes.extend(find_duplicates(tree.modules))
    notes.extend(find_carried_libraries(tree.modules))
    if not native:
        notes.append(f"made for {image.machine}, so it cannot be loaded on this machine")

    report = LibraryReport(
        path=image.path,
        nbytes=len(image.data),
        machine=image.machine,
        native=native,
        dialect=tree.dialect,
        producer=tree.producer,
        target=tree.target,
        root=tree.modules[0].type_key if tree.modules else None,
        modules=tree.modules,
        functions=functions,
        entry=entry,
        blob=tree.blob,
        linkage=dynamic.linkage(),
        hardening=dynamic.hardening(),
        constructors=read_constructors(image, dynamic, symbols),
        symbols=symbols,
        segments=tuple(image.segments),
        sections=dynamic.sections,
        notes=tuple(notes),
        problems=tuple(problems),
    )
    return OpenedLibrary(report, image.data, tree.parsed, tree.root)


def read_dynamic(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Dynamic:
    """Read the dynamic section of a library or a program, as far as it can be read.

    Raises
    ------
    LibraryLoadError
        The file is no 64-bit ELF file, or its program headers cannot be read.
    """
    name = os.fspath(path)
    data = _map(name)
    if bytes(data[:6]) != b"\x7fELF\x02\x01":
        text = f"{_shown(name)}: expected a 64-bit little-endian ELF file"
        raise LibraryLoadError(text, path=os.fsdecode(name), reason="not-elf")
    return Dynamic(Image(data, _shown(name), []))


def _check(path: str | bytes) -> tuple[bool, ElfFile | None, LibraryLoadError | None]:
    """Whether the file is for this machine, and the native check or why it refuses the file."""
    try:
        return True, ElfFile(path), None
    except LibraryLoadError as error:
        if error.reason in _FOREIGN:
            raise
        if error.reason != "machine":
            return True, None, error
        return False, *_check_machine(path, error)


def _check_machine(
    path: str | bytes, refusal: LibraryLoadError
) -> tuple[ElfFile | None, LibraryLoadError | None]:
    """Check a file as a machine of its own kind would; `refusal` is what this machine says."""
    machine = int.from_bytes(_map(path)[_E_MACHINE], "little")
    try:
        return ElfFile(path, machine), None
    except LibraryLoadError as error:
        if error.reason in _FOREIGN:
            raise
        if error.reason == "machine":  # 32-bit or big-endian: nothing of ours is
            raise refusal from None
        return None, error


def _compare(checked: ElfFile, blob: Blob | None) -> Iterator[str]:
    """The loader looks names up by hash: it must find the blob that is shown here."""
    if blob is None or blob.offset is None:
        return
    found = checked.symbol(blob.symbol)
    if found != (blob.offset, blob.nbytes):
        yield f"{blob.symbol}: a load would find {found}, shown is {(blob.offset, blob.nbytes)}"


def _find_unreadable(checked: ElfFile, symbols: SymbolTable) -> Iterator[str]:
    """Say which data a load, or a look-up of a function, would refuse to read."""
    facts = islice(symbols.beginning_with(FACT_PREFIX), MAX_FUNCTIONS)
    for name in (*BLOB_SYMBOLS, MANIFEST, MAIN_NAME, *(symbol.name for symbol in facts)):
        try:
            checked.data(name)
        except LibraryLoadError as error:
            yield f"a load would refuse it: {_without_path(error)}"


def _map(path: str | bytes) -> memoryview:
    """Map a file read-only, never executable; the view keeps the map."""
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        text = f"{_shown(path)}: cannot map: {error}"
        raise LibraryLoadError(text, path=os.fsdecode(path), reason="io") from error


def _shown(path: str | bytes) -> str:
    """A path as valid text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _without_path(error: LibraryLoadError) -> str:
    return error.message.removeprefix(f"{error.path}: ")
