"""list.c, dict.c and set.c beside Numba's: the same results of the same operations, at random."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from typing import Any

import pytest

from .both import compile_support, ours, theirs

NOTED = ctypes.CFUNCTYPE(None, POINTER(c_int64))
EQUAL = ctypes.CFUNCTYPE(c_int, POINTER(c_int64), POINTER(c_int64))
BUFFER = c_int64 * 2

Find = Callable[..., Any]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    folder = tmp_path_factory.mktemp("containers")
    return compile_support(folder, "list.c", "table.c", "dict.c", "set.c", "hash.c")


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


# ---- Lists


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
            "delete_slice": (c_int, c_void_p, index, index, index), "size_address": (index, c_void_p),
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


# ---- Dictionaries and sets


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


def test_hashes_of_text_are_those_of_a_python_without_random_hashes(library: ctypes.CDLL) -> None:
    """What Numba itself reads from such a Python."""
    code = "from numba.cpython import hashing as h; print(*(e.value.value for e in h._hashsecret.values()))"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    names = ("djbx33a_suffix", "siphash_k0", "siphash_k1")
    values = [ctypes.c_uint64.in_dll(library, f"_numba_hashsecret_{name}").value for name in names]
    assert [int(word) for word in done.stdout.split()] == values
