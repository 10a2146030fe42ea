"""Calls of global functions that both runtimes make, and their outcomes. Independent of both."""

from __future__ import annotations

import contextlib
import io
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
    """Functions of the thread first: the order of the calls matters."""
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


def probabilities(count: int, seed: int) -> np.ndarray:
    """Probabilities with ties, which sum to 1."""
    draws = np.random.default_rng(seed).integers(0, 30, count).astype("float32")
    return (draws / draws.sum()).astype("float32")


def samples() -> Iterator[Call]:
    """Tokens of sizes below and above the steps of the sort, with ties."""
    for count in (1, 5, 17, 300, 4000):
        prob = probabilities(count, count).reshape(1, count)
        for uniform in (0.0, 0.3, 0.62, 0.999):
            for top_p in (0.1, 0.9, 1.0):
                yield "vm.builtin.sample_top_p_from_prob", (prob, top_p, uniform)
                logits = (np.log(prob + 1e-3) * 2).astype("float32")
                for temperature in (0.0, 0.7, 1.3):
                    arguments = (logits, temperature, top_p, uniform)
                    yield "vm.builtin.sample_top_p_from_logits", arguments
        uniforms = np.random.default_rng(1).random((6, 1)).astype("float32")
        yield "vm.builtin.multinomial_from_uniform", (np.repeat(prob, 6, 0), uniforms)


def penalties() -> Iterator[Call]:
    """Logits that are changed in place."""
    tokens, counts = np.array([[3, 0, 7]], "int32"), np.array([[2, 1, 9]], "int32")
    logits = numbers("int32", (1, 9), 3).astype("float32") / 7 - 2
    yield "vm.builtin.apply_repetition_penalty", (logits, tokens, 1.3)
    penalty = (logits, tokens, counts, 0.1, 0.7)
    yield "vm.builtin.apply_presence_and_frequency_penalty", penalty
    yield "vm.builtin.apply_softmax_with_temperature", (logits, 0.8)


TYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64", *SORTED[:3])


def indices() -> Iterator[Call]:
    """Elements that are not zero, for every kind of element."""
    for dtype in TYPES:
        for shape in ((4, 5), (7,), (2, 0), (), (2, 3, 4)):
            x = np.asarray(numbers("int32", shape, 4) % 3, dtype)
            yield "relax.run.nonzero", (x,)
    yield "relax.run.nonzero", (numbers("float32", (40,), 4),)
    yield "relax.run.shape_to_tensor", ((3, 4, 5),)


def distinct() -> Iterator[Call]:
    """Every set of outputs of unique, along each axis, with NaN."""
    arrays = [(numbers("int32", (6, 4), 8) % 3).astype(dtype) for dtype in TYPES]
    spread = numbers("float32", (5, 30), 1) + 0.0  # no negative zero: any of both is right
    nan_rows = np.array([[1, np.nan], [1, np.nan], [1, 2], [0, 2]], "float32")
    for x in (*arrays, spread, nan_rows, np.array(3), np.zeros((0, 2), "float32")):
        for flags in range(16):
            wanted = [flags >> bit & 1 for bit in range(4)]
            yield "relax.run.unique", (x, *wanted)
            for axis in (None, 0, -1) if x.ndim == 2 and x.size else ():
                yield "relax.run.unique", (x, *wanted, axis)


def printed() -> Iterator[Call]:
    """Texts of tensors in NumPy's layout, and of other values; what is printed is compared."""
    draws = np.random.default_rng(3)
    for dtype in TYPES:
        for shape in ((), (1,), (30,), (3, 4), (2, 3, 4), (2, 0), (1001,), (40, 50)):
            yield "relax.run.print", ("", np.asarray(numbers("int32", shape, 2) % 7, dtype))
    for scale in (1e-9, 1e-3, 1.0, 1e3, 1e5, 1e7, 1e12, 1e200):
        for dtype in SORTED[:3]:
            if scale < np.finfo(dtype).max and scale > np.finfo(dtype).tiny:
                for shape in ((), (7,), (3, 4)):
                    x = np.asarray(draws.standard_normal(shape) * scale, dtype)
                    yield "relax.run.print", ("", x)
    for dtype in SORTED:
        yield "relax.run.print", ("", numbers(dtype, (12, 11), 6))
    x = np.array([1.5, np.nan, -np.inf, 2e-5], "float64")
    for part in (x, x[:3], x[1:2], x[1:3]):
        yield "relax.run.print", ("", part)
        yield "vm.builtin.debug_print", ("model.py:7", part.reshape(1, -1))
    yield "relax.run.print", ("", 5, True, 2.5, "text", None, (3, 0), 1e22, -1e-7)
    yield "relax.run.print", ("{} and {{{}}} {}", 1, "x", (2, 3))
    yield "relax.run.print", ("{1}{0!r:>6}|{1:*^7}|{0:.2}", "abc", "é")
    yield "relax.run.assert_op", (True, "")
    yield "relax.run.assert_op", (np.array(True), "no {}", 3)


def parameters() -> Iterator[Call]:
    """The tensor cache, and parameters of it; the order of the calls matters."""
    yield "vm.builtin.memory_manager.clear", ()
    for i in range(3):
        yield "vm.builtin.tensor_cache.update", (f"param_{i}", np.arange(i + 1.0))
    yield "vm.builtin.tensor_cache.update", ("param_1", np.arange(9), True)
    yield "vm.builtin.tensor_cache.get", ("param_1",)
    yield "vm.builtin.tensor_cache.get", ("absent",)
    for count in (0, 2, 3, -1):
        yield "vm.builtin.param_array_from_cache", ("param", count)
    yield "vm.builtin.param_array_from_cache_by_name", (("param_2", "param_0"),)
    yield "vm.builtin.param_array_from_cache_by_name_unpacked", ("param_0", "param_0")
    yield "vm.builtin.tensor_cache.remove", ("param_1",)
    yield "vm.builtin.param_array_from_cache", ("param", -1)
    yield "vm.builtin.tensor_cache.clear", ()
    yield "vm.builtin.tensor_cache.get", ("param_0",)


def failing() -> Iterator[Call]:
    """Assertions, whose texts are compared."""
    yield "relax.run.assert_op", (False, "")
    yield "relax.run.assert_op", (0, "", 1, "x", 2.5)
    yield "relax.run.assert_op", (np.array(False), "expected {}, found {:>4}", 1, "x")


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
    yield "relax.run.assert_op", (2.5, "")
    yield "vm.builtin.param_array_from_cache", ("absent", 1)
    yield "vm.builtin.param_array_from_cache_by_name", (("absent",),)
    yield "relax.run.assert_op", (np.array([False]), "")
    yield "relax.run.assert_op", (np.array(0), "")
    yield "relax.run.print", ("{} {}", 1)
    yield "vm.builtin.sample_top_p_from_prob", (np.full((1, 3), np.nan, "float32"), 0.5, 0.5)
    yield "vm.builtin.sample_top_p_from_logits", (np.zeros((2, 3), "float32"), 1.0, 0.5, 0.5)


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    "random_numbers": random_numbers,
    "sorts": sorts,
    "selections": selections,
    "boxes": boxes,
    "samples": samples,
    "penalties": penalties,
    "indices": indices,
    "distinct": distinct,
    "printed": printed,
    "parameters": parameters,
    "failing": failing,
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
            shown = io.StringIO()
            try:
                with contextlib.redirect_stdout(shown):
                    result = read_value(find(name)(*values))
            except Exception as error:  # any error
                rows.append((name, "error", str(error)))
            else:
                after = [read_value(v) for v in values if hasattr(v, "shape")]
                rows.append((name, result, after, shown.getvalue()))
    return made
