"""Progress: the callback that reports the steps of an export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

# Called with the name of each step as it begins. If it has a method `bytes`, that is called with
# (bytes done, bytes in all) while the blob is copied, at least every 16 MiB. If it has a method
# `output`, that is called with the warnings of compilers and of the linker, instead of stderr. If
# it has a method `sources`, that is called as compilers end, with the number of sources that have
# objects, of all sources, and of objects that the cache had. If it has a method `made`, that is
# called with the path of the verified output, before the output replaces an older one.
Progress = Callable[[str], None]


def silent(_step: str) -> None:
    """Report nothing."""


def bytes_of(progress: Progress) -> Callable[[int, int], None]:
    """Return the method `bytes` of a progress, or a function that does nothing."""
    return getattr(progress, "bytes", lambda _done, _total: None)


def output_of(progress: Progress) -> Callable[[str], None] | None:
    """Return the method `output` of a progress, or None."""
    return getattr(progress, "output", None)


def made_of(progress: Progress) -> Callable[[Path], None]:
    """Return the method `made` of a progress, or a function that does nothing."""
    return getattr(progress, "made", lambda _output: None)


def sources_of(progress: Progress) -> Callable[[int, int, int], None] | None:
    """Return the method `sources` of a progress, or None."""
    return getattr(progress, "sources", None)
