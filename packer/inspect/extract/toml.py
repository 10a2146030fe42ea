"""Write TOML with every text quoted, so that any name can be a key or a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\n": r"\n", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def key(text: str) -> str:
    """Write a key, bare if possible."""
    return text if _BARE.fullmatch(text) else quoted(text)


def quoted(text: str) -> str:
    """Write a basic string; unprintable characters become escapes (TOML 1.0, String)."""
    return f'"{"".join(map(_escaped, text))}"'


def quoted_list(texts: Iterable[str]) -> str:
    """Write an array of strings."""
    return f"[{', '.join(map(quoted, texts))}]"


def value(plain: Any) -> str:
    """Write a value of a library's metadata; a mapping becomes an inline table."""
    if isinstance(plain, str):
        return quoted(plain)
    if isinstance(plain, dict):
        rows = (f"{key(name)} = {value(item)}" for name, item in plain.items())
        return f"{{ {', '.join(rows)} }}" if plain else "{}"
    if isinstance(plain, list):
        return f"[{', '.join(map(value, plain))}]"
    return repr(plain).lower()  # True, 1e-05


def table(title: str, values: Mapping[str, str]) -> list[str]:
    """Write a table of values in TOML; nothing for an empty one."""
    rows = [f"{key(name)} = {value}" for name, value in values.items()]
    return [f"[{title}]", *rows] if rows else []


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\U{ord(char):08X}"
