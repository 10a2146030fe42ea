"""File and module names that are safe for any text of a library."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_LENGTH = 80


class Names:
    """Returns each name once, ignoring case as some file systems do."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._files = {name.lower() for name in taken}
        self._modules: set[str] = set()

    def of_module(self, text: str) -> str:
        """Return a name that is a bare key of TOML and a part of a Python name."""
        return _first_free(
            _safe(text).replace(".", "_").replace("-", "_").lower(), "", self._modules
        )

    def of_file(self, *parts: str, suffix: str) -> str:
        """Return a file name of parts: without folders, not hidden, not like an option."""
        return _first_free(".".join(map(_safe, parts)), f".{_safe(suffix)}", self._files)


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text)[:_MAX_LENGTH].strip(".-") or "unnamed"


def _first_free(stem: str, suffix: str, taken: set[str]) -> str:
    number, name = 1, stem + suffix
    while name.lower() in taken:
        number += 1
        name = f"{stem}_{number}{suffix}"
    taken.add(name.lower())
    return name
