"""Checksums: the list of the symbols that an export defines (docs/format.md, Checksums).

    packer-checksums 1
    blob 5f3a9c01 __tvm_dev_mblob       the CRC-32 of the blob's structure
    data 77aa00ff __packer_fn_add       the CRC-32 of the symbol's bytes
    code __tvm_ffi_add

A NUL ends the text. The native core verifies it at each load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from runtime.blob import structure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.blob import Blob

FIRST_LINE = "packer-checksums 1"


def blob_line(symbol: str, blob: Blob) -> str:
    """Write the line of a blob that was dumped, so that its entries have offsets."""
    return f"blob {crc32(structure_of(blob)):08x} {symbol}"


def data_line(symbol: str, data: bytes) -> str:
    """Write the line of a data symbol; `data` is all of its bytes."""
    return f"data {crc32(data):08x} {symbol}"


def checksums_of(symbols: Iterable[str], texts: Mapping[str, str], embedded: Iterable[str]) -> str:
    """Write the text of ``__packer_checksums``, without the NUL.

    Parameters
    ----------
    symbols : iterable of str
        The symbols that the glue exports.
    texts : mapping of str to str
        Those of them that are data, as C strings: a NUL ends them.
    embedded : iterable of str
        The lines for what an embedder adds.
    """
    data = [data_line(name, text.encode() + b"\0") for name, text in texts.items()]
    code = [f"code {name}" for name in sorted(symbols) if name not in texts]
    return "\n".join([FIRST_LINE, *embedded, *data, *code, ""])
