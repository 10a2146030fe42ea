"""Inputs that are nearly right: strategies that edit valid seeds, as Hypothesis draws it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

_NUMBERS = (0, 1, 2, 3, 7, 8, 63, 64, 65, 127, 128, 255, 256, 1000, 65535, 65536, 2**24)
_NUMBERS += tuple(2**bits + step for bits in (31, 32, 61, 62, 63, 64) for step in (-1, 0, 1))
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


@st.composite
def binary(draw: Draw, seeds: Sequence[Seed], most: int = 4) -> bytes:
    """A seed with up to so many edits; most of them change a number."""
    data, fields = draw(st.sampled_from(seeds))
    edited = bytearray(data)
    for _ in range(draw(st.integers(0, most))):
        kind = draw(st.integers(0, 9))
        if fields and kind < 6:
            _set_number(draw, edited, *draw(st.sampled_from(fields)))
        elif edited:
            _edit_bytes(draw, edited, kind % 5, draw(st.sampled_from(seeds)).data)
    return bytes(edited)


def _set_number(draw: Draw, data: bytearray, offset: int, size: int) -> None:
    old = int.from_bytes(data[offset : offset + size], "little")
    near = old + draw(st.sampled_from((-8, -4, -2, -1, 1, 2, 4, 8)))
    new = draw(st.one_of(st.just(near), st.sampled_from((*_NUMBERS, len(data)))))
    data[offset : offset + size] = (new % 256**size).to_bytes(size, "little")


def _edit_bytes(draw: Draw, data: bytearray, kind: int, other: bytes) -> None:
    start = draw(st.integers(0, len(data) - 1))
    nbytes = draw(st.sampled_from((1, 2, 4, 8, 16, 64, 512)))
    if kind == 0:
        data[start] = draw(st.integers(0, 255))
    elif kind == 1:
        del data[start : start + nbytes]
    elif kind == 2:
        data[start:start] = data[start : start + nbytes]
    elif kind == 3:
        data[start : start + nbytes] = other[start : start + nbytes]
    else:
        del data[start:]


@st.composite
def documents(draw: Draw, seeds: Sequence[Any], most: int = 3) -> Any:
    """A JSON value with up to so many values replaced, dropped or doubled."""
    value = json.loads(json.dumps(draw(st.sampled_from(seeds))))
    for _ in range(draw(st.integers(0, most))):
        value = _edit_value(draw, value)
    return value


def _edit_value(draw: Draw, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 7)) == 0:
        return copy.deepcopy(draw(st.sampled_from(_VALUES)))  # later edits go into it
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(keys))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, list):
        value.insert(key, value[draw(st.sampled_from(keys))])
    elif kind == 1:
        value[draw(st.sampled_from(("", "x", *map(str, keys))))] = value[key]
    else:
        value[key] = _edit_value(draw, value[key])
    return value


def json_texts(seeds: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """JSON of edited values, and edited text of JSON."""
    texts = [Seed(json.dumps(seed).encode()) for seed in seeds]
    return st.one_of(documents(seeds).map(lambda v: json.dumps(v).encode()), binary(texts))


@st.composite
def lines(draw: Draw, seeds: Sequence[str], tokens: Sequence[str]) -> bytes:
    """Text with lines dropped, doubled, moved, and words replaced."""
    rows = draw(st.sampled_from(seeds)).split("\n")
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(rows) - 1))
        kind = draw(st.integers(0, 4))
        if kind == 0 and len(rows) > 1:
            del rows[at]
        elif kind == 1:
            rows.insert(draw(st.integers(0, len(rows))), rows[at])
        elif kind == 2:
            rows[at] += draw(st.sampled_from(tokens))
        else:
            name, equals, _ = rows[at].partition("=")
            rows[at] = f"{name}{equals} {draw(st.sampled_from(tokens))}"
    return "\n".join(rows).encode("utf-8", "surrogatepass")
