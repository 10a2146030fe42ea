"""Operations on containers of integers, with ours and with Numba's functions."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from ctypes import POINTER, c_int, c_int64, c_void_p
from typing import Any

from .both import ours, theirs

NOTED = ctypes.CFUNCTYPE(None, POINTER(c_int64))
EQUAL = ctypes.CFUNCTYPE(c_int, POINTER(c_int64), POINTER(c_int64))

Find = Callable[..., Any]


class References:
    """Counts of the references to each item, and the methods that count them."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.retain = NOTED(lambda item: self.counts.update([item[0]]))
        self.release = NOTED(lambda item: self.counts.subtract([item[0]]))
        self.equal = EQUAL(lambda key, other: key[0] == other[0])

    def table(self, *methods: Any) -> Any:
        """The methods as an array of addresses."""
        return (c_void_p * len(methods))(*[ctypes.cast(m, c_void_p) for m in methods])

    def left(self) -> dict[int, int]:
        """The items that are still referenced."""
        return {item: count for item, count in self.counts.items() if count}


def both(library: ctypes.CDLL, run: Callable[[Find, References], list[Any]]) -> None:
    """Run the operations with our functions and with Numba's, and compare all results."""
    notes = [References(), References()]
    found: list[Find] = [lambda *a: ours(library, *a), theirs]
    results = [run(find, note) for find, note in zip(found, notes, strict=True)]
    assert results[0] == results[1]
    assert notes[0].counts == notes[1].counts
    assert len(results[0]) > 1000
