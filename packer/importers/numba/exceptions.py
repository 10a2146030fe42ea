"""Exceptions of compiled code: their class and text, decided when the code is compiled."""

from __future__ import annotations

import os
from typing import Any


def exception_bytes(given: Any) -> bytes | None:
    """Return the record of an exception: class, text, function, file and line, each ended by NUL.

    Parameters
    ----------
    given : object
        What Numba would pickle: ``(class, arguments, (function, file, line) or None)``.

    Returns
    -------
    bytes or None
        None if it is no exception.
    """
    if not (isinstance(given, tuple) and len(given) == 3):
        return None
    kind, arguments, place = given
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return None
    function, file, line = place or ("", "", 0)
    parts = (kind.__name__, text_of(kind, arguments), function, os.path.basename(file), str(line))
    return b"".join(part.replace("\0", "\\0").encode("utf-8", "replace") + b"\0" for part in parts)


def text_of(kind: type[BaseException], arguments: tuple[Any, ...] | None) -> str:
    """Return the text of an exception."""
    try:
        return str(kind(*(arguments or ())))
    except Exception:  # a class of the user's that wants other arguments
        return ", ".join(map(str, arguments or ()))
