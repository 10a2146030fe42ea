"""dict.c and set.c beside Numba's: the same results of the same operations, at random."""

from __future__ import annotations

import ctypes
import random
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from typing import Any

import pytest

from .both import compile_support, ours, theirs
from .references import Find, References, both


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    folder = tmp_path_factory.mktemp("containers")
    return compile_support(folder, "table.c", "dict.c", "set.c")


def hash_of(key: int) -> int:
    """Few hashes for many keys, and none is -1."""
    return (key % 37) * 0x9E3779B97F4A7C1 if key % 3 else key


class Dicts:
    """The functions of dictionaries with integers as keys and values."""

    def __init__(self, find: Find) -> None:
        index, item = c_int64, POINTER(c_int64)
        types = {
            "new_sized": (c_int, POINTER(c_void_p), index, index, index), "free": (None, c_void_p),
            "set_method_table": (None, c_void_p, c_void_p), "length": (index, c_void_p),
            "lookup": (index, c_void_p, item, index, item),
            "insert": (c_int, c_void_p, item, index, item, item),
            "insert_ez": (c_int, c_void_p, item, index, item),
            "delitem": (c_int, c_void_p, index, index), "popitem": (c_int, c_void_p, item, item),
            "iter": (None, c_void_p, c_void_p), "iter_sizeof": (ctypes.c_size_t,),
            "iter_next": (c_int, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
        }  # fmt: skip
        for name, (result, *arguments) in types.items():
            setattr(self, name, find(f"numba_dict_{name}", result, *arguments))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def next(self, state: Any) -> list[int]:
        """The status of the iterator, and what it is at."""
        key, value = c_void_p(), c_void_p()
        if status := self.iter_next(state, key, value):
            return [status]
        return [0, *(c_int64.from_address(at.value or 0).value for at in (key, value))]


def dict_operation(
    dicts: Dicts, made: c_void_p, drawn: random.Random, references: References
) -> list[Any]:
    """One operation, and what it returned."""
    key, value, old = (
        c_int64(drawn.randrange(300)),
        c_int64(drawn.randrange(1000, 2000)),
        c_int64(-9),
    )
    match drawn.randrange(11):
        case 0 | 1 | 2 | 3:
            return [dicts.insert(made, key, hash_of(key.value), value, old)]
        case 4:
            return [dicts.insert_ez(made, key, hash_of(key.value), value)]
        case 5 | 6 | 7:
            place = dicts.lookup(made, key, hash_of(key.value), old)
            if place >= 0:
                place = dicts.delitem(made, hash_of(key.value), place)
            return [place, old.value]
        case 8 if dicts.length(made):
            status = dicts.popitem(made, key, value)
            references.counts.subtract([key.value, value.value])  # ours now
            return [status, key.value, value.value]
    return [dicts.lookup(made, key, hash_of(key.value), old) >= 0, old.value]


def dict_run(find: Find, references: References) -> list[Any]:
    """20,000 operations with an iterator that goes on between them."""
    dicts, drawn, made, seen = Dicts(find), random.Random(4), c_void_p(), []
    assert dicts.new_sized(made, 0, 8, 8) == 0
    counting = (references.retain, references.release)
    dicts.set_method_table(made, references.table(references.equal, *counting, *counting))
    going = ctypes.create_string_buffer(32)
    dicts.iter(going, made)
    for turn in range(20000):
        seen += [*dict_operation(dicts, made, drawn, references), dicts.length(made)]
        seen += dicts.next(going)
        if turn % 50 == 0:
            dicts.iter(going, made)
        if turn % 1000 == 0:
            state = ctypes.create_string_buffer(32)
            dicts.iter(state, made)
            while (at := dicts.next(state))[0] == 0:
                seen += at
            seen += at
    dicts.free(made)
    assert references.left() == {}
    return [*seen, dicts.iter_sizeof()]


def test_dictionaries(library: ctypes.CDLL) -> None:
    """The order of insertion, statuses, the numbers of entries, references."""
    both(library, dict_run)


@pytest.mark.parametrize("count", [5, 6, 10, 11, 21, 22, 1000, 70000])
def test_a_sized_dictionary_is_not_resized(library: ctypes.CDLL, count: int) -> None:
    """As many keys as it was made for, while an iterator is valid; one more key ends it."""
    for find in (lambda *a: ours(library, *a), theirs):
        dicts, made, state = Dicts(find), c_void_p(), ctypes.create_string_buffer(32)
        assert dicts.new_sized(made, count, 8, 8) == 0
        for key in range(count):
            dicts.insert_ez(made, c_int64(key), key, c_int64(-key))
        out = c_int64()
        assert all(dicts.lookup(made, c_int64(key), key, out) == key for key in range(count))
        dicts.iter(state, made)
        assert dicts.next(state) == [0, 0, 0]
        dicts.free(made)
    assert Dicts(lambda *a: ours(library, *a)).new_sized(c_void_p(), 2**60, 8, 8) == -1
    assert Dicts(lambda *a: ours(library, *a)).new_sized(c_void_p(), 2**63 - 1, 8, 8) == -1


def set_run(find: Find, references: References) -> list[Any]:
    """10,000 operations."""
    index, item = c_int64, POINTER(c_int64)
    add, has = (
        find(f"numba_set_{name}", kind, c_void_p, item, index)
        for name, kind in (("add", c_int), ("contains", index))
    )
    discard = find("numba_set_discard", c_int, c_void_p, item, index)
    length = find("numba_set_length", index, c_void_p)
    begin = find("numba_set_iter", None, c_void_p, c_void_p)
    advance = find("numba_set_iter_next", c_int, c_void_p, POINTER(c_void_p))
    made, drawn, seen = c_void_p(), random.Random(5), []
    assert find("numba_set_new_sized", c_int, POINTER(c_void_p), index, index)(made, 8, 4) == 0
    methods = references.table(references.equal, references.retain, references.release)
    find("numba_set_set_method_table", None, c_void_p, c_void_p)(made, methods)
    for turn in range(10000):
        key = drawn.randrange(200)
        function = drawn.choice((add, add, has, discard))
        seen += [function(made, c_int64(key), hash_of(key)), length(made)]
        if turn % 500 == 0:
            state, at = ctypes.create_string_buffer(32), c_void_p()
            begin(state, made)
            while (status := advance(state, at)) == 0:
                seen.append(c_int64.from_address(at.value or 0).value)
            seen.append(status)
    find("numba_set_free", None, c_void_p)(made)
    assert references.left() == {}
    return [*seen, find("numba_set_iter_sizeof", ctypes.c_size_t)()]


def test_sets(library: ctypes.CDLL) -> None:
    """The order of insertion, statuses, references."""
    both(library, set_run)


def test_a_dictionary_without_methods_compares_bytes(library: ctypes.CDLL) -> None:
    """Keys of 3 bytes: a comparison of more would read the padding."""
    made = c_void_p()
    dicts = Dicts(lambda *a: ours(library, *a))
    insert = ours(library, "numba_dict_insert_ez", c_int, c_void_p, c_char_p, c_int64, c_char_p)
    assert dicts.new_sized(made, 0, 3, 1) == 0
    assert insert(made, b"abcX", 5, b"1") == 0
    assert insert(made, b"abcY", 5, b"2") == 1
    assert insert(made, b"abd", 5, b"3") == 0
    assert dicts.length(made) == 2
    dicts.free(made)
