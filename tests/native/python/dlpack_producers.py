"""Objects that give their memory by DLPack alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime._core import Function

Probe = Callable[[str], Function]


class OnlyDLPack:
    """An array that has nothing but DLPack 1.x."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __dlpack__(self, **options: Any) -> Any:
        return self.source.__dlpack__(**options)


class OnlyOldDLPack(OnlyDLPack):
    """The same from before max_version."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return self.source.__dlpack__()
