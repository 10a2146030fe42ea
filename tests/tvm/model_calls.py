"""The calls of models that both runtimes make, and their outcomes. Independent of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Shape(tuple[int, ...]):
    """A shape, which TVM distinguishes from a tuple."""


def floats(*shape: int) -> np.ndarray:
    """Numbers that differ, the same each time."""
    return np.random.default_rng(7).standard_normal(shape).astype("float32")


# By model: function and arguments. Wrong ones are among them.
CALLS: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "branches": [
        ("main", (np.array(True), floats(4))),
        ("main", (np.array(False), floats(4))),
        ("main", (np.array(1), floats(4))),
    ],
    "recursion": [("main", (floats(4),))],
    "dynamic": [
        ("main", (floats(3, 4), floats(4, 5))),
        ("main", (floats(1, 4), floats(4, 1))),
        ("main", (floats(0, 4), floats(4, 2))),
        ("main", (floats(3, 5), floats(4, 5))),
        ("main", (floats(3, 4), floats(4))),
        ("main", (floats(3, 4).astype("float64"), floats(4, 5))),
        ("main", (3, floats(4, 5))),
    ],
    "closures": [("main", (floats(2, 3), 2 * floats(2, 3)))],
    "tuples": [
        ("main", ((floats(2), (floats(7), Shape([7]))), 9)),
        ("main", ((floats(2), (floats(7), Shape([6]))), 9)),
        ("main", ((floats(2),), 9)),
        ("main", (floats(2), 9)),
        ("main", ((floats(2), (floats(7), Shape([7]))), 0.5)),
    ],
    "shapes": [
        ("main", (Shape([2, 3]), floats(2, 5), np.array([7, 8]))),
        ("main", (Shape([2, 3, 4]), floats(2, 5), np.array([7, 8]))),
        ("main", (Shape([2, 3]), floats(2, 5), np.array([7, 8, 9]))),
        ("main", (Shape([2, 3]), floats(5), np.array([7, 8]))),
    ],
    "passing": [
        ("main", (floats(4, 4),)),
        ("same", (floats(4, 4),)),
        ("constant", ()),
        ("same", (floats(4, 4), floats(4, 4))),
    ],
    "views": [
        *(("main", (floats(8, 4), k)) for k in (0, 3, 64, 112, 113)),
        ("main", (floats(0, 4), 0)),
        ("given", (floats(2, 16),)),
        ("constant", ()),
        *(("unknown", (floats(2, 3), Shape([n]))) for n in (0, 6, 7, -1)),
        ("moved", (floats(2, 16),)),  # the operator expects an offset of 0
    ],
    "types": [("main", (floats(8).astype("float64"), np.arange(8, dtype="int8"), floats(8) > 0))],
    "sorting": [
        ("main", (np.round(floats(3, 40) * 2), np.arange(20) % 7)),
        ("main", (floats(3, 4), np.arange(20))),
    ],
    "searching": [
        (
            "main",
            (np.array([[2, 0, 2, 1, 0, 3], [5, 0, 5, 1, 0, 3]], "int32"), abs(floats(2, 5)) / 4),
        )
    ],
    "asserting": [("main", (floats(2, 3), np.array(value))) for value in (True, False)],
    "mlp": [("forward", (floats(1, 16),))],
    "cnn": [("forward", (floats(2, 3, 8, 8),))],
    "onnx": [("main", (floats(1, 3, 8, 8),)), ("main", (floats(5, 3, 8, 8),))],
}


# TVM's generator of C cannot compile a call of a packed function with buffers.
ONLY_LLVM = ("sorting",)

# Models that are compiled for OpenCL as well.
ON_OPENCL = ("mlp", "cnn", "dynamic")


def outcomes(
    model: str, functions: Any, pass_value: Callable[[Any], Any], read_value: Callable[[Any], Any]
) -> list[Any]:
    """Make the calls; return the result of each, or the error's kind and text."""
    made = []
    for name, args in CALLS[model]:
        try:
            result = functions[name](*map(pass_value, args))
        except Exception as error:  # any error: TVM's texts are not compared
            made.append(f"{type(error).__name__}: {error}")
        else:
            made.append(read_value(result))
    return made
