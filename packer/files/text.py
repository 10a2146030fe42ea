"""Text for people: nothing in it acts on a terminal or a browser, and nothing is invisible."""

from __future__ import annotations

import os
from collections.abc import Collection

from runtime.error import ExportError

_MAX_LENGTH = 4_096


def printable(text: str, keep: str = "\t\n") -> str:
    r"""Escape control and formatting characters, surrogates and unusual white space.

    Parameters
    ----------
    keep : str
        Characters that stay; by default tabs and line ends.

    >>> printable("a\u202eb\n")
    'a\\u202eb\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def visible(text: str) -> str:
    """Return `printable` text of at most 4,096 characters, with a note if it was cut."""
    if len(text) > _MAX_LENGTH:
        text = f"{text[:_MAX_LENGTH]}... ({len(text):,} characters)"
    return printable(text)


def some_of(names: Collection[str]) -> str:
    """Return the first five names in alphabetical order, for a message."""
    more = f", and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(sorted(names)[:5])}{more}"


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path for a message: as it is, or its repr if it is empty or not printable."""
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)


def path_error(path: str | os.PathLike[str], text: str) -> ExportError:
    """Make an error about a file: its path, and what is wrong."""
    return ExportError(f"{shown_path(path)}: {text}", path=os.fspath(path))
