"""The calls that both runtimes make, and their outcomes. Independent of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Call:
    """One call: a function, and a way to make its arguments again."""

    function: str
    make: Callable[[], tuple[Any, ...]]
    is_kernel: bool = False  # runs on the library's device


def floats(*shape: int) -> np.ndarray:
    """Numbers that differ, the same each time."""
    return np.random.default_rng(7).standard_normal(shape).astype("float32")


def zeros(*shape: int, dtype: Any = "float32") -> np.ndarray:
    """A place for results."""
    return np.zeros(shape, dtype)


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

ADD_ONE = Call("add_one", lambda: (floats(8), zeros(8)))
SAXPY = Call("saxpy", lambda: (2.5, floats(4099), np.ones(4099, "float32")))
KERNELS = [
    Call("scale", lambda: (floats(1000), zeros(1000)), is_kernel=True),
    Call("scale", lambda: (floats(3), zeros(4)), is_kernel=True),
    Call(
        "turn",
        lambda: (np.arange(256, dtype="int32"), zeros(256, dtype="int32"), -9),
        is_kernel=True,
    ),
]

CALLS = {
    "plain": [
        ADD_ONE,
        Call("transpose", lambda: (floats(5, 7).astype("float64"), zeros(7, 5, dtype="float64"))),
        Call("transpose", lambda: (floats(7, 5).astype("float64").T, zeros(7, 5, dtype="float64"))),
        Call("transpose", lambda: (zeros(0, 3, dtype="float64"), zeros(3, 0, dtype="float64"))),
        Call("integers", lambda: (-(2**40), 2**31 - 1, True, zeros(3, dtype="int64"))),
        Call("integers", lambda: (1, -1, False, zeros(3, dtype="int64"))),
        Call("widen", lambda: (floats(8).astype(BFLOAT16), zeros(8))),
        Call("reverse", lambda: (floats(20000), zeros(20000))),
    ],
    # TVM checks these itself: number, kind, dtype, shape and layout of arguments, and asserts.
    "errors": [
        Call("add_one", lambda: (floats(7), zeros(8))),
        Call("add_one", lambda: (floats(8), zeros(8, dtype="int32"))),
        Call("add_one", lambda: (floats(8, 1), zeros(8))),
        Call("add_one", lambda: (floats(16)[::2], zeros(8))),
        Call("add_one", lambda: (floats(8),)),
        Call("add_one", lambda: (3, zeros(8))),
        Call("add_one", lambda: (None, zeros(8))),
        Call("add_one", lambda: ("text", zeros(8))),
        Call("transpose", lambda: (zeros(2, 3, dtype="float64"), zeros(2, 3, dtype="float64"))),
        Call("integers", lambda: (1.5, 1, True, zeros(3, dtype="int64"))),
        Call("checked", lambda: (5, zeros(4, dtype="int8"))),
        Call("checked", lambda: (3, zeros(4, dtype="int8"))),
    ],
    "parallel": [
        SAXPY,
        Call("saxpy", lambda: (2, floats(1), np.ones(1, "float32"))),
        Call("saxpy", lambda: (2.5, floats(3), np.ones(4, "float32"))),
    ],
    "packed": [
        Call("tell", lambda: (3,)),
        Call("tell", lambda: (7,)),  # the callback raises
    ],
    "const": [
        Call("scale", lambda: (floats(8), zeros(8))),
        Call("scale", lambda: (floats(8) + 1, zeros(8))),
        Call("get_const_var_tensor", tuple),
    ],
    "nested": [
        SAXPY,
        ADD_ONE,
        Call("get_const_var_tensor", tuple),
    ],
    "kernels": KERNELS,
    "kernels_const": [*KERNELS, Call("get_const_var_tensor", tuple)],
    "kernels_parallel": [*KERNELS, SAXPY, *KERNELS],
    "kernels_nested": [*KERNELS, SAXPY, ADD_ONE, Call("get_const_var_tensor", tuple)],
    # TVM's C code generator writes no valid C for these.
    "llvm_only": [
        Call("halve", lambda: (floats(8).astype("float16"), zeros(8, dtype="float16"))),
        Call("sort_of", lambda: (floats(9), zeros(9))),
        Call("hand_over", lambda: (floats(8), 3)),
        Call("hand_over", lambda: (floats(8), 7)),
    ],
}


class Told:
    """A global function that host code calls: it notes its arguments."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def __call__(self, *values: Any) -> int:
        """Note numbers and text as they are, arrays by their contents."""
        self.notes.append([v.numpy().tolist() if hasattr(v, "numpy") else v for v in values])
        if 7 in [v for v in values if isinstance(v, int)]:
            raise ValueError("not seven")
        return 41


def outcome(call: Call, function: Callable[..., Any], pass_array: Callable[..., Any]) -> Any:
    """Call, and return the outcome: result, arrays afterwards, or the error's kind and text."""
    passed = [pass_array(a, call) if isinstance(a, np.ndarray) else a for a in call.make()]
    try:
        result = function(*passed)
    except Exception as error:  # any error: the test compares it
        return type(error).__name__, str(error)
    if hasattr(result, "items"):
        result = {str(name): array.numpy() for name, array in result.items()}
    after = [p.numpy() if hasattr(p, "numpy") else p for p in passed]
    return result, [a for a in after if isinstance(a, np.ndarray)]


def outcomes(
    calls: Iterable[Call], module: Any, pass_array: Callable[..., Any], told: Told
) -> list[Any]:
    """Make all calls of one library; the notes of its callbacks are last."""
    made = [
        outcome(call, module.get_function(call.function, query_imports=True), pass_array)
        for call in calls
    ]
    return [*made, told.notes]
