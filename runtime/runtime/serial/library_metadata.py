"""The metadata of a library: its version, its license, and further values of its author.

    {"schema": 1, "metadata": {"version": "1.0", "license": "MIT", "authors": ["A. Author"]}}

A NUL ends the text, so that C programs can read it too.
"""

from __future__ import annotations

from types import MappingProxyType

from ..abi import LIBRARY_METADATA
from ..error import BlobFormatError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .._core import Library
    from .data_file import DataFile

SCHEMA = 1
MAX_NBYTES = 1 << 20
# Of the values; the record has two levels around them (strict_json.MAX_DEPTH).
MAX_DEPTH = 62
# Keys with a meaning; their values are text.
KNOWN = ("version", "license")

_EXPECTED = "text, a number, true, false, a list or a table"


def metadata_of(library: Library | DataFile | None) -> Mapping[str, Any]:
    """Return the metadata that a library stores, as a new read-only mapping; empty without.

    Raises BlobFormatError as `parse_metadata` does.
    """
    data = library.data(LIBRARY_METADATA) if library is not None else None
    if library is None or data is None:
        return MappingProxyType({})
    return MappingProxyType(parse_metadata(data, path=library.path))


def parse_metadata(data: bytes | memoryview, *, path: str | None = None) -> dict[str, Any]:
    """Parse the bytes of ``__packer_library``.

    Raises BlobFormatError if they are not a record of schema 1, or have more than 1 MiB.
    """
    try:
        return _parse(data)
    except ValueError as error:
        prefix = f"{path}: " if path else ""
        text = f"{prefix}{LIBRARY_METADATA} at 0x0: {error}; export the library again"
        raise BlobFormatError(text, path=path, offset=0) from error


def _parse(data: bytes | memoryview) -> dict[str, Any]:
    from .strict_json import parse_json

    if len(data) > MAX_NBYTES:
        raise ValueError(f"metadata of {len(data)} bytes, expected at most {MAX_NBYTES}")
    text = bytes(data)
    if not text.endswith(b"\0"):
        raise ValueError("text without a NUL at its end, expected one")
    fields = parse_json(text[:-1])
    schema = fields.get("schema") if isinstance(fields, dict) else None
    if type(schema) is not int or schema != SCHEMA:
        raise ValueError(f"schema {shown(schema)}, expected {SCHEMA}")
    return _plain_table(fields.get("metadata"))


def dump_metadata(metadata: Mapping[str, Any]) -> bytes:
    """Write the bytes of ``__packer_library``: version and license first, then in order.

    Raises ValueError for what `parse_metadata` would refuse, and for values that TOML or JSON does
    not have; the text names the value's place.
    """
    import json

    plain = _plain_table(metadata)
    plain = {**{key: plain[key] for key in KNOWN if key in plain}, **plain}
    fields = {"schema": SCHEMA, "metadata": plain}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = text.encode() + b"\0"
    _parse(data)  # with the limits of a reader
    return data


def _plain_table(metadata: object) -> dict[str, Any]:
    """Copy the metadata, whose known keys are text."""
    if not hasattr(metadata, "items"):
        raise ValueError(f"expected a table, found {shown(metadata)}")
    plain: dict[str, Any] = _plain(metadata, "", 0)
    for key in KNOWN:
        value = plain.get(key, "1")
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{key}: expected text, found {shown(value)}")
    return plain


def _plain(value: Any, where: str, depth: int) -> Any:
    """Copy a value, with lists for tuples and dicts for mappings."""
    if depth > MAX_DEPTH:
        raise ValueError(f"metadata of more than {MAX_DEPTH} levels, expected at most that many")
    if isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"{where}: expected a finite number, found {value}")
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if not hasattr(value, "items"):
        raise ValueError(f"{where}: expected {_EXPECTED}, found {shown(value)}")
    if wrong := [key for key in value if not isinstance(key, str)]:
        text = f"expected names that are text, found {shown(wrong[0])}"
        raise ValueError(f"{where}: {text}" if where else text)
    fields = {}
    for key, item in value.items():
        place = f"{where}.{key}" if where else key
        fields[_text(key, place)] = _plain(item, place, depth + 1)
    return fields


def _text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where!a}: expected Unicode, found half a surrogate pair") from None
    return text
