"""``--json``: write an object piece by piece, so that its text may have any length.

One line for each field, and for each item of a list that contains objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .terminal import write_parts

_PLAIN = (str, int, float, type(None))


def write_json(content: Mapping[str, Any], to_plain: Callable[[Any], Any] | None = None) -> None:
    """Write an object to stdout as plain ASCII, with the errors of `terminal.write`.

    `to_plain` turns objects that JSON lacks into dicts and lists, one level at a time.
    """
    write_parts(_text(content, json.JSONEncoder(default=to_plain, check_circular=False), ""))
    write_parts("\n")


def _text(value: Any, encoder: json.JSONEncoder, indent: str) -> Iterator[str]:
    """Yield the text of a field; a short one in one piece."""
    if isinstance(value, _PLAIN) or not value:
        yield _encode(encoder, value)
        return
    if not isinstance(value, Mapping | Iterable):
        value = encoder.default(value)
    inner = f"{indent}  "
    if isinstance(value, Mapping):
        for opening, (name, item) in zip(_first("{"), value.items(), strict=False):
            yield f"{opening}\n{inner}{_encode(encoder, name)}: "
            yield from _text(item, encoder, inner)
        yield f"\n{indent}}}"
    elif all(isinstance(item, _PLAIN) for item in value):
        yield _encode(encoder, list(value))
    else:
        for opening, item in zip(_first("["), value, strict=False):
            yield f"{opening}\n{inner}{_encode(encoder, _item(encoder, item))}"
        yield f"\n{indent}]"


def _item(encoder: json.JSONEncoder, item: Any) -> Any:
    """Return an item; a named tuple as an object, not as a list."""
    return encoder.default(item) if hasattr(item, "_fields") else item


def _first(opening: str) -> Iterator[str]:
    yield opening
    while True:
        yield ","


def _encode(encoder: json.JSONEncoder, value: Any) -> str:
    """Encode a value; JSON does not escape DEL, which a terminal does not show."""
    return encoder.encode(value).replace("\x7f", "\\u007f")
