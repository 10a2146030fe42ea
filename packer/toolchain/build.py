"""The build in effect: where compilers start, how many at a time, and who shows what they print.

A context variable holds it, because an `fcompile` of a caller may be between an export and the
compilers: a function (output, objects, options) that calls `create_shared`, for example.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.error import ExportError, shown

from ..files.text import printable

if TYPE_CHECKING:
    from concurrent.futures import Executor


class ActiveBuild(NamedTuple):
    """How compilers and linkers run."""

    # Where they start, so that relative paths in options mean files in it; None if the current
    # folder was removed.
    folder: Path | None
    jobs: int  # how many run at a time
    show: Callable[[str], None]  # called with what a compiler or linker printed that did not fail
    # Called with the number of sources that have objects, of all of them, and of those whose
    # objects are from the cache.
    counted: Callable[[int, int, int], None]
    executor: Executor | None  # runs the compilers; None: this process starts them
    # The paths of private files in commands, and the names that messages have for them.
    names: dict[str, str]
    shown: set[str]  # the warnings that were shown: a source may be compiled several times

    def named(self, text: str) -> str:
        """Replace the paths of private files in the output of a program, the longest ones first."""
        for private in sorted(self.names, key=len, reverse=True):
            text = text.replace(private, self.names[private])
        return text

    def hide(self, private: Path) -> None:
        """Leave a private folder out of the paths in messages."""
        self.names[f"{private}/"] = ""
        if self.folder is not None:
            self.names[f"{os.path.relpath(private, self.folder)}/"] = ""


_CURRENT: ContextVar[ActiveBuild] = ContextVar("build")


@contextlib.contextmanager
def building(
    folder: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    show: Callable[[str], None] | None = None,
    counted: Callable[[int, int, int], None] | None = None,
    executor: Executor | None = None,
) -> Iterator[ActiveBuild]:
    """Run the compilers of a block so; by default in the current folder, and on all processors.

    Raises ExportError if there is no such folder, if `jobs` is less than 1, or if `executor` is not
    an executor.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        text = "executor: expected a concurrent.futures.Executor, with a method submit, found "
        raise ExportError(f"{text}{shown(executor)}")
    if jobs is not None and jobs < 1:
        raise ExportError(f"jobs: expected at least 1, found {jobs}")
    if folder is not None and not os.path.isdir(folder):
        raise ExportError(f"{os.fspath(folder)}: there is no such folder", path=os.fspath(folder))
    run = _absolute(folder), jobs or _processors(), show or _to_stderr, counted or _ignore
    build = ActiveBuild(*run, executor, names={}, shown=set())
    token = _CURRENT.set(build)
    try:
        yield build
    finally:
        _CURRENT.reset(token)


def current_build() -> ActiveBuild:
    """Return the build in effect, or the default one."""
    defaults = _absolute(None), _processors(), _to_stderr, _ignore, None
    return _CURRENT.get(None) or ActiveBuild(*defaults, names={}, shown=set())


def _absolute(folder: str | os.PathLike[str] | None) -> Path | None:
    try:
        return Path(folder or "").resolve()
    except FileNotFoundError:  # the current folder was removed
        return None


def _ignore(_done: int, _total: int, _cached: int) -> None:
    pass


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _to_stderr(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        print(printable(text), file=sys.stderr, flush=True)
