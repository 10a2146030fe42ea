"""The module types: one file per family of type keys, with its loader."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    from ..public_names import import_public

    return import_public(__name__, name)
