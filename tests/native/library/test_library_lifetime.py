"""Opening and closing libraries: who keeps whom alive."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

from runtime._core import Library

from ...support.mapped import is_mapped
from ..plain_library import answer


def test_last_reference_closes_the_library(library_file: Path) -> None:
    """The library is closed with its last reference, and not before."""
    library = Library(str(library_file))
    assert is_mapped(library_file)
    del library
    assert not is_mapped(library_file)


def test_view_keeps_the_library_open(library_file: Path) -> None:
    """The bytes that a memoryview shows stay mapped, slices included."""
    view = Library(str(library_file)).data("blob")
    assert view is not None
    part = view[3:5]
    assert (bytes(view), view.readonly, view.format) == (b"1234567\0", True, "B")
    del view
    assert is_mapped(library_file)
    assert bytes(part) == b"45"
    del part
    assert not is_mapped(library_file)


def test_function_keeps_library_and_owner(library_file: Path) -> None:
    """A Function is sufficient for a call."""

    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    function = Library(str(library_file)).function("answer", owner)
    del owner
    assert function is not None
    assert (function(), function.owner) == (1, gone())
    del function
    assert (gone(), is_mapped(library_file)) == (None, False)


def test_cycle_through_the_owner_is_collected(library_file: Path) -> None:
    """An owner that caches its functions does not keep the library for ever."""

    class Owner:
        function: object = None

    owner = Owner()
    owner.function = Library(str(library_file)).function("answer", owner)
    del owner
    gc.collect()
    assert not is_mapped(library_file)


def test_load_and_unload_leave_nothing(library_file: Path) -> None:
    """Neither descriptors nor maps grow over many rounds."""

    def count() -> tuple[int, int]:
        maps = Path("/proc/self/maps").read_text()
        return len(os.listdir("/proc/self/fd")), maps.count(str(library_file))

    before = count()
    for _ in range(100):
        assert answer(Library(str(library_file))) == 1
    assert count() == before
