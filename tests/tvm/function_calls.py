"""Calls of global functions that both runtimes make, and their outcomes. Independent of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SEED = 1_700_000_000  # of the thread's generator
SORTED = ("float16", "float32", "float64", "int32", "int64")
INDICES = ("int32", "int64", "float32", "float64")

Call = tuple[str, tuple[Any, ...]]


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers with ties; floats with both zeros, infinities and NaN too."""
    draws = np.random.default_rng(seed)
    if np.dtype(dtype).kind != "f":
        return draws.integers(0, 40, shape).astype(dtype)
    values = draws.integers(-20, 20, shape).astype(dtype) / 4
    rare = draws.random(shape)
    values[rare < 0.04] = np.nan
    values[(rare > 0.1) & (rare < 0.14)] = -0.0
    values[rare > 0.98] = np.inf
    return values


def sorts() -> Iterator[Call]:
    """Each data type, order and axis; lengths around the steps of the merges."""
    for dtype in SORTED:
        for length in (0, 1, 2, 7, 8, 15, 16, 97, 1000):
            x = numbers(dtype, (length,), length)
            for ascending in (True, False):
                yield "tvm.contrib.sort.sort", (x, np.zeros_like(x), 0, ascending)
                out = np.zeros(length, "int32")
                yield "tvm.contrib.sort.argsort", (x, out, -1, ascending)
    for index in INDICES:
        x = numbers("float32", (3, 50, 2), 5)
        for axis in (0, 1, 2, -1):
            yield "tvm.contrib.sort.argsort", (x, np.zeros_like(x, index), axis, False)
            yield "tvm.contrib.sort.sort", (x, np.zeros_like(x), axis, True)


def selections() -> Iterator[Call]:
    """The best elements, of each data type, with each set of outputs."""
    for dtype in (*SORTED, "uint8", "int8"):
        for k in (1, 3, 30, 0):
            x = numbers(dtype, (2, 30, 3), k)
            for ascending in (True, False):
                values = np.zeros((2, k or 30, 3), dtype)
                for index in (*INDICES, *({dtype} & {"uint8", "int8"})):
                    indices = np.zeros((2, k or 30, 3), index)
                    both = (x, values, indices, k, 1, "both", ascending)
                    yield "tvm.contrib.sort.topk", both
    x = numbers("float32", (4, 300), 9)
    for kind, dtype in (("values", "float32"), ("indices", "int64")):
        yield "tvm.contrib.sort.topk", (x, np.zeros((4, 20), dtype), 20, -1, kind, False)
    y = np.zeros((4, 400), "float32")  # more than there are
    yield "tvm.contrib.sort.topk", (x, y, 400, 1, "values", False)


def boxes() -> Iterator[Call]:
    """argsort_nms: as many elements of each row as the counts say."""
    x = numbers("float32", (3, 40), 2)
    for ascending in (True, False):
        counts, out = np.array([40, 0, 13], "int32"), np.zeros((3, 40), "int32")
        yield "tvm.contrib.sort.argsort_nms", (x, counts, out, 1, ascending)


def random_numbers() -> Iterator[Call]:
    """Those of the thread first: the order of the calls matters."""
    for dtype in ("float32", "int8", "uint8", "float16", "float64", "int32", "int64"):
        yield "tvm.contrib.random.random_fill", (np.zeros((5, 9), dtype),)
    yield "tvm.contrib.random.uniform", (-3.0, 5.0, np.zeros(700, "float32"))
    yield "tvm.contrib.random.normal", (1.5, 2.0, np.zeros(701, "float32"))
    yield "tvm.contrib.random.normal", (0.0, 1.0, np.zeros(3, "float32"))
    for dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        yield "tvm.contrib.random.randint", (-50, 1 << 40, np.zeros(50, dtype))
        yield "tvm.contrib.random.randint", (3, 17, np.zeros(50, dtype))
    for seeds in ((1, 2), (-5, 1 << 40), (0, 7)):
        yield "tvm.contrib.random.uniform", (*seeds, 0.0, 1.0, np.zeros(20, "float32"))
        yield "tvm.contrib.random.normal", (*seeds, 0.0, 1.0, np.zeros(21, "float32"))
    yield "tvm.contrib.random.uniform", (0, 0, 0.0, 1.0, np.zeros(20, "float32"))


def refused() -> Iterator[Call]:
    """Calls that both refuse."""
    x, y = np.zeros(4, "float32"), np.zeros(4, "float32")
    yield "tvm.contrib.sort.sort", (x.astype("uint16"), y.astype("uint16"), 0, True)
    yield "tvm.contrib.sort.sort", (x, y.astype("float64"), 0, True)
    yield "tvm.contrib.sort.sort", (x, y, 1, True)
    yield "tvm.contrib.sort.argsort", (x, y.astype("int16"), 0, True)
    yield "tvm.contrib.sort.topk", (x, y, 2, 0, "neither", True)
    yield "tvm.contrib.sort.argsort_nms", (x.astype("float64"), y, y, 0, True)
    yield "tvm.contrib.random.uniform", (1.0, 1.0, y)
    yield "tvm.contrib.random.uniform", (0.0, 1.0, y.astype("float64"))
    yield "tvm.contrib.random.normal", (0.0, 0.0, y)
    yield "tvm.contrib.random.randint", (0, 4, y)
    yield "tvm.contrib.random.randint", (4, 4, y.astype("int32"))


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    "random_numbers": random_numbers,
    "sorts": sorts,
    "selections": selections,
    "boxes": boxes,
    "refused": refused,
}


def outcomes(
    find: Callable[[str], Any], pass_value: Callable[[Any], Any], read_value: Callable[[Any], Any]
) -> dict[str, list[Any]]:
    """Make all calls; return the result of each with its arrays afterwards, or the word error."""
    made: dict[str, list[Any]] = {}
    for group, calls in GROUPS.items():
        rows = made.setdefault(group, [])
        for name, args in calls():
            values = [pass_value(arg) for arg in args]
            try:
                result = read_value(find(name)(*values))
            except Exception as error:  # any error: the texts are not compared
                rows.append((name, "error", str(error)))
            else:
                rows.append((name, result, [read_value(v) for v in values if hasattr(v, "shape")]))
    return made
