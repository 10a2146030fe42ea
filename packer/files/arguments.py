"""Check arguments that are lists: iterating over one str would yield its letters."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

from runtime.error import ExportError

PathLike = str | os.PathLike[str]
Item = TypeVar("Item", bound=PathLike)


def list_of(given: Iterable[Item] | None, name: str) -> list[Item]:
    """Copy a list of words or paths; None is empty, one word or path is an ExportError."""
    if given is None:
        return []
    if isinstance(given, str | bytes | os.PathLike):
        text = f"{name}: expected a list of str, found {given!r}; write [{os.fsdecode(given)!r}]"
        raise ExportError(text)
    if not isinstance(given, Iterable):
        raise ExportError(f"{name}: expected a list of str, found {given!r}")
    return list(given)


def one_or_more(given: PathLike | Iterable[PathLike], name: str) -> list[PathLike]:
    """Copy a list of paths as `list_of` does; one path is a list of one."""
    return [given] if isinstance(given, str | os.PathLike) else list_of(given, name)
