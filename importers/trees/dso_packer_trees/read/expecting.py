"""expecting: what a damaged model raises inside a reader becomes an ExportError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from packer import ExportError

_DAMAGE = (KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError)


@contextmanager
def expecting(where: str, expected: str) -> Iterator[None]:
    """Let a missing key, a wrong type or a wrong number say what was expected."""
    try:
        yield
    except ExportError:
        raise  # it is a ValueError, too
    except RecursionError as error:
        raise ExportError(f"{where}: too many levels; save the model again") from error
    except _DAMAGE as error:
        text = f"{type(error).__name__}: {error}, expected {expected}"
        raise ExportError(f"{where}: {text}; save the model again") from error
