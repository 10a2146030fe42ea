"""An export without a compiler: a copy of a library that has the code already gets another tree.

A wheel may have a library that packer exported of its code (`HostModule.prelinked`). If all code of
a tree is in it, an export copies the library, and replaces the tree, the manifest and their
checksums.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from runtime._core import ElfFile
from runtime.error import LibraryLoadError, ToolchainError
from runtime.serial.manifest import dump_manifest

from .declare.declaration import with_char
from .declare.facts import dump_facts
from .dialect import Naming, unread_by_tvm
from .embed.segment import replace
from .files.progress import bytes_of, made_of
from .host_code import functions_with_constants
from .levels.note import imported_code
from .output import Build, Output
from .records import PRODUCER, blob_line, data_line
from .target import find_target, native_triple
from .toolchain.compiler import named_compiler
from .toolchain.verify import check_linked, verify_output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runtime.blob import Blob
    from runtime.module import Module
    from runtime.serial.stream import Chunk

    from .files.output import Workspace
    from .files.progress import Progress
    from .modules.host import HostModule

_NAMES = Naming()


def find_prelinked(
    root: Module, hosts: Sequence[HostModule], output: Output, build: Build
) -> Path | None:
    """Return the library that has the code of all modules, with the same facts.

    None if there is none; if `output`, `build` or a variable such as CC says how to compile or
    link; or if the export has notes.
    """
    output = output._replace(metadata=output.metadata or None)
    build = build._replace(cwd=None, jobs=None, executor=None)
    library, *others = {host.prelinked for host in hosts} or {None}
    if others or library is None or not library.exists():
        return None
    if (output, build) != (Output(), Build()) or named_compiler("link"):
        return None
    notes = (*unread_by_tvm(root, "tvm"), *(code.notes for code in imported_code(root)))
    if any(notes) or functions_with_constants(root):
        return None
    char = find_target(native_triple()).machine.char
    functions = [with_char(function, char) for host in hosts for function in host.functions]
    texts = {_NAMES.fact(function.name): dump_facts(function) for function in functions}
    facts = {data_line(symbol, text.encode() + b"\0") for symbol, text in texts.items()}
    return library if facts <= {*_checksums(library)[1]} else None


def write_copy(
    library: Path, blob: Blob, chunks: Sequence[Chunk], workspace: Workspace, step: Progress
) -> None:
    """Write a copy of a library with another tree.

    Raises ExportError if it cannot be written, ToolchainError if the library is damaged.
    """
    triple = native_triple()
    manifest = dump_manifest(blob, producer=PRODUCER, target=triple)
    symbols = {_NAMES.blob: chunks, _NAMES.manifest: [manifest]}
    changed = (blob_line(blob, _NAMES.blob), data_line(_NAMES.manifest, manifest))
    lines = {line.split()[-1]: line for line in changed}
    offset, old = _checksums(library)
    text = "\n".join(lines.get(line.rpartition(" ")[2], line) for line in old)
    step("place")
    with workspace.writing():
        shutil.copyfile(library, workspace.output)
        with workspace.output.open("r+b") as file:
            file.seek(offset)
            file.write(text.encode())
        replace(workspace.output, symbols, bytes_of(step))
    step("verify")
    made = check_linked(workspace.output, triple)
    verify_output(workspace.output, made, [_NAMES.checksums], symbols, {})
    made_of(step)(workspace.output)


def _checksums(library: Path) -> tuple[int, list[str]]:
    """Return the offset and lines of the checksums: the new ones have as many bytes."""
    try:
        made = ElfFile(str(library), find_target(native_triple()).machine.e_machine)
    except LibraryLoadError as error:
        raise ToolchainError(f"{error}; install the package again that has it") from error
    offset, nbytes = made.symbol(_NAMES.checksums) or (0, 0)
    with library.open("rb") as file:
        file.seek(offset or 0)
        return offset or 0, file.read(max(nbytes - 1, 0)).decode().split("\n")
