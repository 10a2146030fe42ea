"""Progress: how an export tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable

# Called with the name of each step as it begins. If it has a method `bytes`, that is called with
# (bytes done, bytes in all) while the blob is copied, at least every 16 MiB.
Progress = Callable[[str], None]


def silent(_step: str) -> None:
    """The progress where nobody asked for any."""


def bytes_of(progress: Progress) -> Callable[[int, int], None]:
    """What to tell of the bytes; nothing, where nobody asked for it."""
    return getattr(progress, "bytes", _ignore)


def _ignore(_done: int, _total: int) -> None:
    pass
