"""The manifest: a small JSON text with the place of each entry of a blob.

    {"schema": 1, "producer": "dso-packer 0.2.0", "target": "x86_64-linux-gnu",
     "entries": [{"type_key": "cuda", "offset": 20, "nbytes": 225}, ...]}

Offsets are bytes from the start of the blob; an entry includes its key. They are used to skip
payloads whose type key has no loader, and must end exactly at the next key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..abi import MANIFEST
from ..error import BlobFormatError, shown
from ..modules.opaque import OpaqueModule

if TYPE_CHECKING:
    from typing import Any

    from ..blob import Blob
    from ..module import Module
    from .stream import Reader

SCHEMA = 1


class Manifest:
    """A parsed manifest: the program that wrote the library, its machine, and the entries."""

    def __init__(self, producer: str, target: str, ends: dict[int, tuple[str, int]]) -> None:
        self.producer = producer
        self.target = target
        self._ends = ends

    def carry(self, reader: Reader, type_key: str, start: int) -> Module:
        """Read the payload of a type without a loader as an OpaqueModule.

        Raises BlobFormatError if the manifest does not list the entry, or lists a wrong length.
        """
        key, end = self._ends.get(start, ("", 0))
        if key != type_key or end < reader.offset:
            raise reader.error(f"entry {type_key!r} that {MANIFEST} does not list", start)
        module = OpaqueModule(type_key, reader.read_raw(end - reader.offset, "a payload"))
        if not reader.ends_entry():
            raise reader.error(f"the end of {type_key!r} in {MANIFEST}, expected the next key", end)
        return module


def parse_manifest(data: bytes | memoryview, *, path: str | None = None) -> Manifest:
    """Parse the bytes of ``__packer_manifest``; NULs at the end are ignored.

    Raises BlobFormatError if it is not a manifest of schema 1.
    """
    from .strict_json import MAX_NBYTES, parse_json

    try:
        return _read_fields(parse_json(bytes(data[: MAX_NBYTES + 1]).rstrip(b"\0")))
    except ValueError as error:
        prefix = f"{path}: " if path else ""
        text = f"{prefix}{MANIFEST} at 0x0: {error}, expected a manifest"
        raise BlobFormatError(text, path=path, offset=0) from error


def _read_fields(fields: object) -> Manifest:
    schema = _size(fields, "schema")
    if schema != SCHEMA:
        raise ValueError(f"schema {schema}, expected {SCHEMA}; install a newer runtime")
    ends = {}
    for entry in _field(fields, "entries", list, "a list"):
        offset, nbytes = _size(entry, "offset"), _size(entry, "nbytes")
        ends[offset] = (_field(entry, "type_key", str, "a text"), offset + nbytes)
    producer = _field(fields, "producer", str, "a text")
    return Manifest(producer, _field(fields, "target", str, "a text"), ends)


def _field(fields: object, name: str, kind: type, expected: str) -> Any:
    value = fields.get(name) if isinstance(fields, dict) else None
    if type(value) is not kind:  # True is an int
        raise ValueError(f"{name} {shown(value)}, expected {expected}")
    return value


def _size(fields: object, name: str) -> int:
    value: int = _field(fields, name, int, "a size")
    if not 0 <= value < 1 << 63:
        raise ValueError(f"{name} {shown(value)}, expected a size")
    return value


def dump_manifest(blob: Blob, *, producer: str, target: str) -> bytes:
    """Write the manifest of a blob after `blob.dump`, which sets the offsets of its entries."""
    entries = [{"type_key": e.key, "offset": e.offset, "nbytes": e.nbytes} for e in blob.entries]
    fields = {"schema": SCHEMA, "producer": producer, "target": target, "entries": entries}
    return json.dumps(fields, separators=(",", ":")).encode()
