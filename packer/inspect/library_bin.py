"""The blob of dialect ``tvm-ffi``, taken apart as far as a listing needs it.

    vector<u64> indptr, vector<u64> child_indices
    per module: string kind, then, unless kind is "_lib": string payload

Payloads tell their length, so no loader is needed; they are carried as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.abi import LIB_KEY
from runtime.blob import Blob, Entry
from runtime.import_tree import check_import_tree
from runtime.modules.opaque import OpaqueModule
from runtime.registry import known_type_keys
from runtime.stream import is_type_key

if TYPE_CHECKING:
    from runtime.stream import Reader


def parse_library_bin(reader: Reader) -> Blob:
    """Read the bytes behind ``__tvm_ffi__library_bin``, its nbytes header left out.

    Raises
    ------
    BlobFormatError
        They break the format.
    """
    row_ptr, indices = reader.read_u64_vector(), reader.read_u64_vector()
    # Each entry takes 8 bytes at least, so a false count ends at the end of the blob.
    entries = [_read_entry(reader) for _ in row_ptr[1:]]
    if reader.remaining:
        what = f"{reader.remaining} bytes behind the last of {len(entries)} modules"
        raise reader.error(f"{what}, expected none")
    if sum(entry.module is None for entry in entries) > 1:
        raise reader.error("a second '_lib', expected one at most", 0)
    check_import_tree(reader, row_ptr, indices, num_nodes=len(entries), at=0)
    return Blob(entries, row_ptr, indices)


def has_loader(type_key: str) -> bool:
    """Whether a type is known here; what packages offer by entry points is not asked."""
    return type_key in known_type_keys() or type_key.endswith("_json")


def _read_entry(reader: Reader) -> Entry:
    start = reader.offset
    kind = reader.read_string()
    if not is_type_key(kind.encode()):
        raise reader.error(f"kind {kind!r}, expected letters, digits, '_', '.', '-'", start)
    module = None if kind == LIB_KEY else OpaqueModule(kind, reader.read_bytes())
    return Entry(kind, module, start, reader.offset - start)
