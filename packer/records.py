"""The records of a library: what an export stores for its readers, beside the blob.

Each row of RECORDS makes one of them; a new record is a new row. docs/format.md has their bytes.

    manifest       the place of each entry of the blob
    metadata       the description of the library
    bill           the parts of the library (`sbom`), and the note .note.package
    bundle         room for the signature's bundle, which is filled later
    CPU levels     the processors that the code is compiled for
    left out       the functions that were found and not exported, each with the reason
    structs        the layouts of structs and unions, whose members are read in place
    constants      the constants and variables of the host code

Readers find a record by its symbol. The first four are embedded as the blob is; the others exist
only beside host code, whose glue defines them, with the facts of each function. The checksums, the
last record, list the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import runtime
from runtime.abi import BUNDLE
from runtime.blob import structure_of
from runtime.error import ExportError
from runtime.serial.library_metadata import dump_metadata
from runtime.serial.manifest import dump_manifest

from .declare.constants.record import constants_text
from .declare.left_out import dump_left_out
from .declare.struct_record import dump_structs
from .files.text import path_error
from .trust.sbom import bill_of, note_of, require_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from runtime.blob import Blob
    from runtime.serial.stream import Chunk

    from .declare.declaration import Declaration
    from .declare.glue import Glue
    from .embed import Symbols
    from .link import Link
    from .modules.host import CodeFile, HostModule
    from .output import Output
    from .toolchain.formats import OutputFormat

PRODUCER = f"dso-packer {runtime.__version__}"
FIRST_LINE = "packer-checksums 1"
MAX_ROOM = 1 << 26  # bytes for a bundle


class Contents(NamedTuple):
    """An export, as far as it is done when the records are made.

    `chunks` are the bytes of the blob; none if it is empty, or if a function of the caller packs
    the imports. `files` are the code of the hosts. `triple` is the target as the linker names it.
    """

    path: Path
    output: Output
    output_format: OutputFormat
    blob: Blob
    chunks: Sequence[Chunk]
    hosts: Sequence[HostModule]
    files: Sequence[CodeFile]
    functions: Sequence[Declaration]
    link: Link
    triple: str | None


class Record(NamedTuple):
    """One record."""

    symbol: str  # its symbol
    # Its bytes; of one of the glue without the NUL at the end. Empty: the library has none.
    data: bytes
    files: tuple[CodeFile, ...] = ()  # what is linked for it
    is_glue: bool = False  # True if the glue defines it
    # False if its bytes change after the export, so that the checksums do not list it.
    is_final: bool = True


def _manifest(of: Contents) -> Record:
    if not of.chunks:
        return Record(of.link.naming.manifest, b"")
    data = dump_manifest(of.blob, producer=PRODUCER, target=of.triple or "")
    # The address of a registered symbol has no size: a NUL ends the text.
    return Record(of.link.naming.manifest, data + b"\0" * of.link.naming.system_lib)


def _metadata(of: Contents) -> Record:
    return Record(of.link.naming.metadata, metadata_bytes(of.output.metadata))


def _bill(of: Contents) -> Record:
    if not of.output.sbom:
        return Record(of.link.naming.sbom, b"")
    return Record(of.link.naming.sbom, bill_of(of), files=(note_of(of),))


def _bundle(of: Contents) -> Record:
    return Record(BUNDLE, bytes(of.output.signature_room), is_final=False)


def _cpu_levels(of: Contents) -> Record:
    text = of.link.levels.record or ""
    return Record(of.link.naming.cpu_levels, text.encode(), is_glue=True)


def _left_out(of: Contents) -> Record:
    text = dump_left_out(of.hosts, {function.name for function in of.functions})
    return Record(of.link.naming.left_out, text.encode(), is_glue=True)


def _structs(of: Contents) -> Record:
    char = of.link.target.machine.char
    text = dump_structs((function.aggregates for function in of.functions), char)
    return Record(of.link.naming.structs, text.encode(), is_glue=True)


def _constants(of: Contents) -> Record:
    return Record(of.link.naming.constants, constants_text(of.hosts).encode(), is_glue=True)


RECORDS: tuple[Callable[[Contents], Record], ...] = (
    *(_manifest, _metadata, _bill, _bundle, _cpu_levels, _left_out, _structs, _constants),
)


def records_of(contents: Contents) -> list[Record]:
    """Return the records that a library has, but for the checksums."""
    return [record for make in RECORDS if (record := make(contents)).data]


def embedded(contents: Contents, records: Sequence[Record], glue: Glue) -> tuple[Symbols, str]:
    """Return the bytes that an embedder puts into a library, by symbol, and the checksums' text.

    The checksums are among them if no host code brings a glue, which would define them.
    """
    own = [record for record in records if not record.is_glue]
    symbols: dict[str, Sequence[Chunk]] = {}
    lines = []
    if contents.chunks:
        symbols[contents.link.naming.blob] = contents.chunks
        lines.append(blob_line(contents.blob, contents.link.naming.blob))
    symbols |= {record.symbol: [record.data] for record in own}
    lines += [data_line(record.symbol, record.data) for record in own if record.is_final]
    text = checksums_of(glue.symbols, glue.texts, lines)
    if symbols and not contents.hosts:
        symbols[contents.link.naming.checksums] = [text.encode() + b"\0"]
    return symbols, text


def checksums_of(symbols: Iterable[str], texts: Mapping[str, str], lines: Iterable[str]) -> str:
    """Write the text of ``__packer_checksums``, without the NUL.

        packer-checksums 1
        blob 5f3a9c01 __tvm_dev_mblob       the CRC-32 of the blob's structure
        data 77aa00ff __packer_fn_add       the CRC-32 of the symbol's bytes
        code __tvm_ffi_add

    `symbols` are the glue's, `texts` are the C strings among them; `lines` are the lines of the
    blob and of embedded records. The native core verifies it at each load.
    """
    data = [data_line(name, text.encode() + b"\0") for name, text in texts.items()]
    code = [f"code {name}" for name in sorted(symbols) if name not in texts]
    return "\n".join([FIRST_LINE, *lines, *data, *code, ""])


def blob_line(blob: Blob, symbol: str) -> str:
    """Return the line of a blob."""
    return f"blob {crc32(structure_of(blob)):08x} {symbol}"


def data_line(symbol: str, data: bytes) -> str:
    """Return the line of a data symbol; `data` is all of its bytes."""
    return f"data {crc32(data):08x} {symbol}"


def metadata_bytes(metadata: Mapping[str, Any] | None) -> bytes:
    """Write the record of a library's metadata; empty without.

    Raises ExportError if the metadata has a value that JSON and TOML cannot express, or is too
    large.
    """
    try:
        return dump_metadata(metadata) if metadata else b""
    except ValueError as error:
        raise ExportError(f"metadata: {error}") from None


def check_records(output: Output, path: Path, suffix: str, system_lib: bool) -> None:
    """Refuse records that an output of this kind cannot have, before anything is made.

    Raises ExportError if metadata, the bill or the room for a bundle is not possible; for a bill
    also if cyclonedx-python-lib is missing.
    """
    metadata_bytes(output.metadata)
    found = "a system library" if system_lib else f".{suffix}"
    is_shared = suffix == "so" and not system_lib
    if not 0 <= (room := output.signature_room) <= MAX_ROOM:
        raise ExportError(f"signature_room {room}, expected 0 to {MAX_ROOM} bytes")
    if room and not is_shared:
        text = f"signature_room is for shared libraries, found {found}; sign the linked library"
        raise path_error(path, text)
    if output.sbom:
        if not is_shared:
            raise path_error(path, f"sbom is for shared libraries, found {found}; drop it")
        require_packages()
