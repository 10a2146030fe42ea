"""The contents that an embedder puts into a library: blob, manifest, records; their checksums.

The checksums list the symbols that an export defines (docs/format.md, Checksums):

    packer-checksums 1
    blob 5f3a9c01 __tvm_dev_mblob       the CRC-32 of the blob's structure
    data 77aa00ff __packer_fn_add       the CRC-32 of the symbol's bytes
    code __tvm_ffi_add

A NUL ends the text. The native core verifies it at each load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import runtime
from runtime.blob import structure_of
from runtime.error import ExportError
from runtime.library_metadata import dump_metadata
from runtime.manifest import dump_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from runtime.blob import Blob
    from runtime.stream import Chunk

    from ..dialect import Naming

PRODUCER = f"dso-packer {runtime.__version__}"
FIRST_LINE = "packer-checksums 1"


def record_of(metadata: Mapping[str, Any] | None) -> bytes:
    """Write the record of a library's metadata; empty without.

    Raises
    ------
    ExportError
        If the metadata has other values than those of JSON and TOML, or is too large.
    """
    try:
        return dump_metadata(metadata) if metadata else b""
    except ValueError as error:
        raise ExportError(f"metadata: {error}") from None


def symbols_of(
    blob: Blob,
    chunks: Sequence[Chunk],
    records: Mapping[str, bytes],
    triple: str | None,
    naming: Naming,
) -> tuple[dict[str, Sequence[Chunk]], list[str]]:
    """Return the chunks of blob, manifest and records by symbol, and their lines of the checksums.

    `records` are further data by symbol; an empty one is left out.
    """
    symbols: dict[str, Sequence[Chunk]] = {}
    lines = []
    if chunks:
        manifest = dump_manifest(blob, producer=PRODUCER, target=triple or "")
        # The address of a registered symbol has no size: a NUL ends the text.
        manifest += b"\0" * naming.system_lib
        symbols = {naming.blob: chunks, naming.manifest: [manifest]}
        lines.append(f"blob {crc32(structure_of(blob)):08x} {naming.blob}")
        lines.append(_data_line(naming.manifest, manifest))
    for symbol, record in records.items():
        if record:
            symbols[symbol] = [record]
            lines.append(_data_line(symbol, record))
    return symbols, lines


def checksums_of(symbols: Iterable[str], texts: Mapping[str, str], embedded: Iterable[str]) -> str:
    """Write the text of ``__packer_checksums``, without the NUL.

    `symbols` are those of the glue, `texts` those of them that are C strings; `embedded` are the
    lines of `symbols_of`.
    """
    data = [_data_line(name, text.encode() + b"\0") for name, text in texts.items()]
    code = [f"code {name}" for name in sorted(symbols) if name not in texts]
    return "\n".join([FIRST_LINE, *embedded, *data, *code, ""])


def _data_line(symbol: str, data: bytes) -> str:
    """Return the line of a data symbol; `data` is all of its bytes."""
    return f"data {crc32(data):08x} {symbol}"
