"""The manifest: a small JSON text with the place of each entry of a blob.

    {"schema": 1, "producer": "dso-packer 0.2.0", "target": "x86_64-linux-gnu",
     "entries": [{"type_key": "cuda", "offset": 20, "nbytes": 225}, ...]}

Offsets are bytes from the start of the blob; an entry includes its key. They are used to skip
payloads whose type key has no loader, and must end exactly at the next key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from ..abi import MANIFEST
from ..error import BlobFormatError, shown

if TYPE_CHECKING:
    from typing import Any

    from ..blob import Blob

SCHEMA = 1


class Manifest(NamedTuple):
    """A parsed manifest: the program that wrote the library, and its machine."""

    producer: str
    target: str


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
    for entry in _field(fields, "entries", list, "a list"):
        _size(entry, "offset")
        _size(entry, "nbytes")
        _field(entry, "type_key", str, "a text")
    producer = _field(fields, "producer", str, "a text")
    return Manifest(producer, _field(fields, "target", str, "a text"))


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
