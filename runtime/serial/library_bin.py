"""The blob of dialect ``tvm-ffi``: its reader and its writer (TVM since mid-2025).

A library carries, behind the symbol ``__tvm_ffi__library_bin``, a u64 nbytes and then nbytes of

    vector<u64> indptr, vector<u64> child_indices     CSR over the modules in wire order
    per module: string kind, then, unless kind is "_lib": string payload

Module 0 is the root; parents precede their children when we write. A payload is what the other
dialect has behind the key, but for device code (`modules.device`), and its length is told: a kind
without a loader is carried as it is.
"""

from __future__ import annotations

from ..abi import LIB_KEY
from ..blob import Blob, Entry, check_tree, load_payload, read_key
from ..error import LoaderNotFoundError
from ..import_tree import read_import_tree
from ..modules.opaque import OpaqueModule
from ..stream import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..module import Module
    from ..stream import Chunk, Reader

DIALECT = "tvm-ffi"


def parse_library_bin(reader: Reader) -> Blob:
    """Take a blob apart; see `blob.parse`."""
    row_ptr, indices = read_import_tree(reader)
    # Each entry takes 9 bytes at least, so a false count ends at the end of the blob.
    entries = [_read_entry(reader) for _ in row_ptr[1:]]
    if reader.remaining:
        what = f"{reader.remaining} bytes behind the last of {len(entries)} modules"
        raise reader.error(f"{what}, expected none")
    blob = Blob(entries, row_ptr, indices, dialect=DIALECT)
    check_tree(reader, blob, at=0)
    return blob


def dump_library_bin(blob: Blob) -> list[Chunk]:
    """Write a blob; see `blob.dump`."""
    assert blob.import_tree_row_ptr is not None
    assert blob.import_tree_child_indices is not None
    writer = Writer(dialect=DIALECT)
    writer.write_vector(blob.import_tree_row_ptr, writer.write_u64)
    writer.write_vector(blob.import_tree_child_indices, writer.write_u64)
    for entry in blob.entries:
        entry.is_sized = True
        entry.offset = writer.offset
        writer.write_string(entry.key)
        if entry.module is not None:
            writer.write_sized(entry.module.save_to_binary)
        entry.nbytes = writer.offset - entry.offset
    return writer.finish()


def _read_entry(reader: Reader) -> Entry:
    start = reader.offset
    kind = read_key(reader)
    module = None if kind == LIB_KEY else _read_module(reader, kind, start)
    return Entry(kind, module, start, reader.offset - start, is_sized=True)


def _read_module(reader: Reader, kind: str, start: int) -> Module:
    payload = reader.read_sized()
    try:
        module = load_payload(payload, kind, start)
    except LoaderNotFoundError:
        return OpaqueModule(kind, payload.read_raw(payload.remaining))
    if payload.remaining:
        text = f"{payload.remaining} bytes behind the payload of {kind!r}, expected none"
        raise payload.error(text)
    return module
