"""Callables to pass to native functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime._core import Function

Probe = Callable[[str], Function]


def echo(*values: Any) -> Any:
    """Return the first value, or None."""
    return values[0] if values else None


class CallableObject:
    """An object that can be called."""

    def __call__(self, value: int) -> int:
        return value + 1

    def method(self, value: int) -> int:
        return value + 1
