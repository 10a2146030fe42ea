"""Inputs that are nearly right: valid seeds with some edits.

Hypothesis draws one number for each edit, which decides all of that edit. So an input is drawn
quickly, and a failing one is shrunk to the edits that it needs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

_NUMBERS = (0, 1, 2, 3, 7, 8, 63, 64, 65, 127, 128, 255, 256, 1000, 65535, 65536, 2**24)
_NUMBERS += tuple(2**bits + step for bits in (31, 32, 61, 62, 63, 64) for step in (-1, 0, 1))
_STEPS = (-8, -4, -2, -1, 1, 2, 4, 8)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        "",
        "x",
        "\ud800",
        "\0",
        "a" * 300,
        "float32",
        "int8x4",
        0.5,
        -1,
        -(2**63),
    ),
    *([], {}, [[]], [0], {"": 0}, 1e308, float("nan"), *_NUMBERS, 10**300),
)


class Seed(NamedTuple):
    """A valid input, and where its numbers are: (offset, size) each."""

    data: bytes
    fields: tuple[tuple[int, int], ...] = ()


def edited(seeds: Sequence[T], edit: Callable[[Random, T], T]) -> st.SearchStrategy[T]:
    """One of the seeds after up to three edits."""

    def make(index: int, numbers: Sequence[int]) -> T:
        value = seeds[index]
        for number in numbers:
            value = edit(Random(number), value)
        return value

    return st.builds(
        make,
        st.integers(0, len(seeds) - 1),
        st.lists(st.integers(0, 2**32 - 1), min_size=0, max_size=3),
    )


# ---- Bytes


def binary(seeds: Sequence[Seed]) -> st.SearchStrategy[bytes]:
    """Seeds with edits of `edit_binary`."""

    def edit(random: Random, seed: Seed) -> Seed:
        return edit_binary(random, seed, seeds)

    return edited(seeds, edit).map(lambda seed: seed.data)


def edit_binary(random: Random, seed: Seed, seeds: Sequence[Seed]) -> Seed:
    """Change a number of a seed, or change, drop, double or mix bytes."""
    data = bytearray(seed.data)
    if seed.fields and random.random() < 0.6:
        _set_number(random, data, *random.choice(seed.fields))
    elif data:
        _edit_bytes(random, data, random.choice(seeds).data)
    return Seed(bytes(data), seed.fields)


def _set_number(random: Random, data: bytearray, offset: int, size: int) -> None:
    old = int.from_bytes(data[offset : offset + size], "little")
    new = random.choice((old + random.choice(_STEPS), random.choice(_NUMBERS), len(data)))
    data[offset : offset + size] = (new % 256**size).to_bytes(size, "little")


def _edit_bytes(random: Random, data: bytearray, other: bytes) -> None:
    start, nbytes = random.randrange(len(data)), random.choice((1, 2, 4, 8, 16, 64, 512))
    kind = random.randrange(5)
    if kind == 0:
        data[start] = random.randrange(256)
    elif kind == 1:
        del data[start : start + nbytes]
    elif kind == 2:
        data[start:start] = data[start : start + nbytes]
    elif kind == 3:
        data[start : start + nbytes] = other[start : start + nbytes]
    else:
        del data[start:]


# ---- JSON


def json_texts(seeds: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """JSON of edited values, and edited text of JSON."""
    values = edited(seeds, lambda random, value: _edit_value(random, copy.deepcopy(value)))
    texts = [Seed(json.dumps(seed).encode()) for seed in seeds]
    return st.one_of(values.map(lambda value: json.dumps(value).encode()), binary(texts))


def _edit_value(random: Random, value: Any) -> Any:
    """A JSON value with one value in it replaced, dropped or doubled."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.1:
        return copy.deepcopy(random.choice(_VALUES))
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key, kind = random.choice(keys), random.randrange(10)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, list):
        value.insert(key, copy.deepcopy(value[random.choice(keys)]))
    elif kind == 1:
        value[random.choice(("", "x", *keys))] = copy.deepcopy(value[key])
    else:
        value[key] = _edit_value(random, value[key])
    return value


# ---- Lines


def lines(seeds: Sequence[str], tokens: Sequence[str]) -> st.SearchStrategy[bytes]:
    """Text with lines dropped, doubled or moved, and the value after ``=`` replaced."""

    def edit(random: Random, text: str) -> str:
        rows = text.split("\n")
        at, kind = random.randrange(len(rows)), random.randrange(5)
        if kind == 0:
            del rows[at]
        elif kind == 1:
            rows.insert(random.randrange(len(rows)), rows[at])
        elif kind == 2:
            rows[at] += random.choice(tokens)
        else:
            name, equals, _ = rows[at].partition("=")
            rows[at] = f"{name}{equals} {random.choice(tokens)}"
        return "\n".join(rows)

    return edited(seeds, edit).map(lambda text: text.encode("utf-8", "surrogatepass"))
