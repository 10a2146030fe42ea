"""inspect_library(path): the contents of a library, read from its bytes, never executed.

Data that a load would use are found as a load finds them, through the program headers. Sections
are used for the static symbols only. The report contains all that can be read, and the problems.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from runtime._core import ElfFile
from runtime.abi import (
    ANY_MACHINE,
    BLOB_SYMBOLS,
    FACT_PREFIX,
    HEADER_NBYTES,
    LIBRARY_METADATA,
    MAIN_NAME,
    MANIFEST,
)
from runtime.error import LibraryLoadError

from ..elf.dynamic import Dynamic
from ..elf.image import Image, map_file, valid_path
from ..elf.section_table import read_static_symbols
from .constants import read_constants, shown_values
from .cpu_levels import read_cpu_levels
from .functions import MAX_FUNCTIONS, read_entry_function, read_functions
from .graph import read_graph
from .metadata import read_metadata
from .report import BlobReport, LibraryReport, Symbols
from .startup import read_constructors
from .text import render
from .tree import (
    Tree,
    find_carried_libraries,
    find_duplicates,
    find_encrypted,
    read_blob,
    verify_checksums,
    with_operators,
)

if TYPE_CHECKING:
    import runtime
    from runtime.blob import Blob

    from ..elf.linkage import Linkage
    from ..elf.symbol_table import SymbolTable

__all__ = ["LibraryReport", "OpenedLibrary", "inspect_library", "open_library", "render"]


class OpenedLibrary(NamedTuple):
    """A library that was inspected."""

    report: LibraryReport
    data: memoryview  # the whole file; the view owns the mapping
    parsed: Blob | None  # the parsed blob; None if there is none, or it cannot be read
    # The tree; ``"library"`` represents the host code, which is not loaded.
    root: runtime.Module | None

    @property
    def body(self) -> memoryview:
        """The blob without its 8-byte header."""
        blob = self.report.blob
        if blob is None or blob.offset is None:
            return memoryview(b"")
        return self.data[blob.offset + HEADER_NBYTES : blob.offset + blob.nbytes]


# Reasons of the native check for files that are not 64-bit ELF shared objects.
_FOREIGN = ("io", "not-a-file", "not-elf", "format")


def inspect_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> LibraryReport:
    """Read the contents of a library without loading it.

    Parameters
    ----------
    path : path
        Any 64-bit little-endian ELF shared object, of any machine, stripped or not.

    Returns
    -------
    LibraryReport
        Its contents. ``report.problems`` lists what would stop a load or cannot be read.

    Raises
    ------
    LibraryLoadError
        If the file is not such an object, or its program headers cannot be read.

    Examples
    --------
    >>> report = packer.inspect_library("model.so")  # doctest: +SKIP
    >>> [function.signature for function in report.functions]  # doctest: +SKIP
    ['int64_t add(int64_t a, int64_t b)']
    """
    return open_library(path).report


def open_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> OpenedLibrary:
    """Read a library as `inspect_library` does, and keep its modules and bytes."""
    name = os.fspath(path)
    problems: list[str] = []
    notes: list[str] = []

    native, checked, refusal = _check(name)
    try:
        image = Image(map_file(name), valid_path(name), problems)
    except LibraryLoadError as error:
        raise refusal or error from None  # the native check is more precise
    # From here on all segments are known, and every read is inside the file.
    if refusal is not None:
        problems.append(f"a load would refuse it: {_without_path(refusal)}")

    dynamic = Dynamic(image)
    symbols = Symbols(dynamic.symbols, read_static_symbols(image, dynamic, notes))
    linkage = dynamic.linkage()
    functions = read_functions(image, dynamic.symbols)
    entry = read_entry_function(image, dynamic.symbols)
    tree = read_blob(image, dynamic.symbols, [function.name for function in functions], notes)
    if checked is not None:
        problems.extend(_compare(checked, tree.blob))
        problems.extend(_find_unreadable(checked, dynamic.symbols))
        verify_checksums(checked, image, dynamic.symbols, tree)
    cpu = read_cpu_levels(image, dynamic.symbols, checked if native else None)
    constants = read_constants(image, dynamic.symbols)
    graph = read_graph(tree.root, notes)
    notes.extend(find_duplicates(tree.modules))
    notes.extend(find_carried_libraries(tree.modules))
    notes.extend(find_encrypted(tree.parsed))
    if not native:
        notes.append(f"compiled for {image.machine}, so it cannot be loaded on this machine")

    report = LibraryReport(
        path=image.path,
        nbytes=len(image.data),
        machine=image.machine,
        native=native,
        dialect=tree.dialect,
        producer=tree.producer,
        target=tree.target or _target_of(tree, image, linkage),
        metadata=read_metadata(image, dynamic.symbols),
        root=tree.modules[0].type_key if tree.modules else None,
        modules=tree.modules,
        functions=with_operators(functions, tree.root),
        entry=entry,
        cpu=cpu,
        constants=shown_values(constants),
        globals=constants.globals,
        graph=graph,
        blob=tree.blob,
        linkage=linkage,
        hardening=dynamic.hardening(),
        constructors=read_constructors(image, dynamic, symbols),
        symbols=symbols,
        segments=tuple(image.segments),
        sections=dynamic.sections,
        notes=tuple(notes),
        problems=tuple(problems),
    )
    return OpenedLibrary(report, image.data, tree.parsed, tree.root)


def _target_of(tree: Tree, image: Image, linkage: Linkage) -> str | None:
    """Return the target of a library of packer that has no manifest."""
    if tree.producer is None:
        return None
    libc = f"-{linkage.libc}" if linkage.libc is not None else ""
    return f"{image.machine}-linux{libc}"


def _check(path: str | bytes) -> tuple[bool, ElfFile | None, LibraryLoadError | None]:
    """Return whether the file is for this machine, and the native check or its error."""
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
    """Check a file as its machine would; `refusal` is the error of this machine."""
    try:
        return ElfFile(path, ANY_MACHINE), None
    except LibraryLoadError as error:
        if error.reason in _FOREIGN:
            raise
        if error.reason == "machine":  # 32-bit or big-endian, never written by packer
            raise refusal from None
        return None, error


def _compare(checked: ElfFile, blob: BlobReport | None) -> Iterator[str]:
    """The loader looks up names by hash: it must find the blob of the report."""
    if blob is None or blob.offset is None:
        return
    found = checked.symbol(blob.symbol)
    if found != (blob.offset, blob.nbytes):
        yield f"{blob.symbol}: a load would find {found}, expected {(blob.offset, blob.nbytes)}"


def _find_unreadable(checked: ElfFile, symbols: SymbolTable) -> Iterator[str]:
    """Name the data that a load, or a look-up of a function, would refuse."""
    facts = islice(symbols.beginning_with(FACT_PREFIX), MAX_FUNCTIONS)
    known = (*BLOB_SYMBOLS, MANIFEST, LIBRARY_METADATA, MAIN_NAME)
    for name in (*known, *(symbol.name for symbol in facts)):
        try:
            checked.data(name)
        except LibraryLoadError as error:
            yield f"a load would refuse it: {_without_path(error)}"


def _without_path(error: LibraryLoadError) -> str:
    return error.message.removeprefix(f"{error.path}: ")
