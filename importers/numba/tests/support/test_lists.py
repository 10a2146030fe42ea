"""list.c beside Numba's lists: the same results of the same operations, at random."""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from ctypes import POINTER, c_int, c_int64, c_void_p
from typing import Any

import pytest

from .both import compile_support, ours, theirs
from .references import Find, References, both


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    folder = tmp_path_factory.mktemp("containers")
    return compile_support(folder, "list.c")


class Lists:
    """The functions of lists with items of one integer."""

    def __init__(self, find: Find) -> None:
        index, item = c_int64, POINTER(c_int64)
        types = {
            "new": (c_int, POINTER(c_void_p), index, index), "free": (None, c_void_p),
            "set_method_table": (None, c_void_p, c_void_p), "append": (c_int, c_void_p, item),
            "length": (index, c_void_p), "allocated": (index, c_void_p),
            "getitem": (c_int, c_void_p, index, item), "setitem": (c_int, c_void_p, index, item),
            "delitem": (c_int, c_void_p, index), "base_ptr": (c_void_p, c_void_p),
            "delete_slice": (c_int, c_void_p, index, index, index),
            "size_address": (index, c_void_p),
            "is_mutable": (c_int, c_void_p), "set_is_mutable": (None, c_void_p, c_int),
            "iter": (None, c_void_p, c_void_p), "iter_next": (c_int, c_void_p, POINTER(c_void_p)),
            "iter_sizeof": (ctypes.c_size_t,),
        }  # fmt: skip
        for name, (result, *arguments) in types.items():
            setattr(self, name, find(f"numba_list_{name}", result, *arguments))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def items(self, made: c_void_p) -> list[int]:
        """The content, by the iterator."""
        state, item, items = ctypes.create_string_buffer(24), c_void_p(), []
        self.iter(state, made)
        while (status := self.iter_next(state, item)) == 0:
            items.append(c_int64.from_address(item.value or 0).value)
        return [*items, status]


def list_operation(lists: Lists, made: c_void_p, drawn: random.Random) -> list[Any]:
    """One operation, and what it returned."""
    size = lists.length(made)
    place = drawn.randrange(-1, size + 2)
    item = c_int64(drawn.randrange(50))
    match drawn.randrange(12):
        case 0 | 1 | 2 | 3 | 4:
            return [lists.append(made, item)]
        case 5:
            return [lists.setitem(made, place, item)]
        case 6:
            return [lists.delitem(made, place)]
        case 7:
            out = c_int64(-9)
            return [lists.getitem(made, place, out), out.value]
        case 8 if drawn.random() < 0.3:
            start, stop, step = slice(
                drawn.randrange(-size - 2, size + 3), drawn.randrange(-size - 2, size + 3),
                drawn.choice((1, 1, 2, 3, -1, -2)),
            ).indices(size)  # fmt: skip
            return [lists.delete_slice(made, start, stop, step)]
        case 9 if drawn.random() < 0.1:
            lists.set_is_mutable(made, 1 - lists.is_mutable(made))
    return [lists.is_mutable(made)]


def list_run(find: Find, references: References) -> list[Any]:
    """4,000 operations."""
    lists, drawn, made, seen = Lists(find), random.Random(3), c_void_p(), []
    assert lists.new(made, 8, 3) == 0
    lists.set_method_table(made, references.table(references.retain, references.release))
    for _ in range(4000):
        seen += list_operation(lists, made, drawn)
        seen += [lists.length(made), lists.allocated(made), *lists.items(made)]
    assert c_int64.from_address(lists.size_address(made)).value == lists.length(made)
    content = lists.items(made)[:-1]
    assert references.left() == Counter(content)
    if content:
        assert c_int64.from_address(lists.base_ptr(made)).value == content[0]
    lists.free(made)
    assert references.left() == {}
    return [*seen, lists.iter_sizeof()]


def test_lists(library: ctypes.CDLL) -> None:
    """The items, the allocated room, statuses, references."""
    both(library, list_run)


def test_a_list_that_changes_ends_its_iterator(library: ctypes.CDLL) -> None:
    """Status -3; sizes that no memory has give -2."""
    for find in (lambda *a: ours(library, *a), theirs):
        lists, made = Lists(find), c_void_p()
        assert lists.new(made, 8, 0) == 0
        state = ctypes.create_string_buffer(24)
        lists.iter(state, made)
        lists.append(made, c_int64(1))
        assert lists.iter_next(state, c_void_p()) == -3
        lists.free(made)
    assert Lists(lambda *a: ours(library, *a)).new(c_void_p(), 8, 2**62) == -2
