"""math.c, libm.c and reshape.c beside Numba's functions: the same bits."""

from __future__ import annotations

import ctypes
import itertools
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from dso_packer_numba import symbols

from .both import compile_support, ours, theirs

F64, F32 = ctypes.c_double, ctypes.c_float
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.7, -3.7, 1e-310, 1e300, -1e300, 171.5, 36.0]
EDGES += [float("inf"), float("-inf"), float("nan"), 5e-324, 1.1754944e-38, 0.1, 27.3, -170.2]
DRAWN = random.Random(1)
NUMBERS = EDGES + [DRAWN.uniform(-40, 40) for _ in range(200)]
NUMBERS += [DRAWN.uniform(-1, 1) for _ in range(200)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    return compile_support(tmp_path_factory.mktemp("math"), "math.c", "libm.c", "reshape.c")


def bits(value: Any) -> Any:
    """The bits of a float, so that NaN is equal to itself; other values unchanged."""
    return struct.pack("<d", value) if isinstance(value, float) and value == value else repr(value)


def names(file: str) -> list[str]:
    """The symbols that the file provides."""
    return [name for name in symbols._TABLE if symbols._TABLE[name] == symbols.Provided(file)]


BINARY = ("pow", "fmod", "atan2", "nextafter")
OTHER = ("frexp", "ldexp", "fpto", "fixed", "div", "rem", "cpow", "fnclex")
UNARY = [
    name
    for name in [*names("math.c"), *names("libm.c")]
    if not any(part in name for part in (*BINARY, *OTHER))
]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(library: ctypes.CDLL, name: str) -> None:
    """Every one, in both precisions."""
    kind = F32 if name.endswith("f") and name != "numba_erf" else F64
    mine, other = ours(library, name, kind, kind), theirs(name, kind, kind)
    for x in NUMBERS:
        assert bits(mine(x)) == bits(other(x)), x


@pytest.mark.parametrize("name", [f"numba_{name}{end}" for name in BINARY for end in ("", "f")])
def test_functions_of_two_numbers(library: ctypes.CDLL, name: str) -> None:
    """Every pair of the special numbers."""
    kind = F32 if name.endswith("f") else F64
    mine, other = ours(library, name, kind, kind, kind), theirs(name, kind, kind, kind)
    for x, y in itertools.product(NUMBERS[:60], repeat=2):
        assert bits(mine(x, y)) == bits(other(x, y)), (x, y)


@pytest.mark.parametrize(("end", "kind"), [("", F64), ("f", F32)])
def test_exponents(library: ctypes.CDLL, end: str, kind: Any) -> None:
    """Infinities, NaN and zeros have the exponent 0."""
    results = []
    for find in (lambda *a: ours(library, *a), theirs):
        frexp = find(f"numba_frexp{end}", kind, kind, ctypes.POINTER(ctypes.c_int))
        ldexp = find(f"numba_ldexp{end}", kind, kind, ctypes.c_int)
        exponent = ctypes.c_int()
        made = []
        for x in NUMBERS:
            exponent.value = 77
            made.append((bits(frexp(x, exponent)), exponent.value))
            made += [bits(ldexp(x, n)) for n in (-2000, -5, 0, 1, 12, 2000)]
        results.append(made)
    assert results[0] == results[1]


def test_integers_and_conversions(library: ctypes.CDLL) -> None:
    """Division truncates; negative numbers wrap."""
    whole = [1, -1, 7, -7, 2**63 - 1, -(2**63) + 1, 10**12]
    for name in ("sdiv", "srem", "udiv", "urem"):
        kind = ctypes.c_int64 if name[0] == "s" else ctypes.c_uint64
        mine = ours(library, f"numba_{name}", kind, kind, kind)
        other = theirs(f"numba_{name}", kind, kind, kind)
        for a, b in itertools.product(whole, repeat=2):
            assert mine(a, b) == other(a, b)
    for name, kind in (("numba_fptoui", F64), ("numba_fptouif", F32)):
        mine, other = (
            ours(library, name, ctypes.c_uint64, kind),
            theirs(name, ctypes.c_uint64, kind),
        )
        for x in (0.0, 1.9, -1.0, -3.5, 1e18, -1e18, 123456.789):
            assert mine(x) == other(x)
    for name, kind in (("numba_fixed_fmod", F64), ("numba_fixed_fmodf", F32)):
        assert ours(library, name, kind, kind, kind)(7.5, -2.0) == 1.5


@pytest.mark.parametrize(("name", "kind"), [("numba_cpow", F64), ("numba_cpowf", F32)])
def test_powers_of_complex_numbers(library: ctypes.CDLL, name: str, kind: Any) -> None:
    """Also where Python raises ZeroDivisionError: the result is NaN."""
    pair = kind * 2
    mine, other = ours(library, name, None, pair, pair, pair), theirs(name, None, pair, pair, pair)
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -0.3, 1e200, float("inf"), float("nan")]
    for a in itertools.product(values, repeat=2):
        for b in itertools.product(values, repeat=2):
            results = []
            for function in (mine, other):
                out = pair()
                function(pair(*a), pair(*b), out)
                results.append([bits(x) for x in out])
            assert results[0] == results[1], (a, b)


def shapes(drawn: random.Random) -> Iterator[tuple[list[int], list[int], list[int], int]]:
    """Shapes with strides, shapes to change them into, and the order."""
    for _ in range(6000):
        shape = [drawn.choice((1, 1, 2, 3, 4, 6)) for _ in range(drawn.randrange(1, 5))]
        if drawn.random() < 0.05:
            shape[0] = 0
        order = drawn.choice((0, 1))
        strides, step = [0] * len(shape), 8
        for axis in range(len(shape)) if order else reversed(range(len(shape))):
            strides[axis] = step * drawn.choice((1, 1, 1, 2))
            step = strides[axis] * max(shape[axis], 1)
        size = 1
        for extent in shape:
            size *= extent
        wanted = []
        for factor in (2, 3, 2, 3, 4, 2):
            if size and size % factor == 0 and drawn.random() < 0.8:
                wanted.append(factor)
                size //= factor
        wanted += [1] * drawn.randrange(2) + [size]
        drawn.shuffle(wanted)
        yield shape, strides, wanted, order


def test_strides_of_another_shape(library: ctypes.CDLL) -> None:
    """6,000 shapes: the same strides, or a copy is needed in both."""
    vector, number = ctypes.POINTER(ctypes.c_int64), ctypes.c_int64
    types = (number, vector, vector, number, vector, vector, number, ctypes.c_int)
    name = "numba_attempt_nocopy_reshape"
    mine, other = ours(library, name, ctypes.c_int, *types), theirs(name, ctypes.c_int, *types)
    counts = [0, 0]
    for shape, strides, wanted, order in shapes(random.Random(2)):
        if order and all(extent == 1 for extent in shape):
            continue  # Numba reads before its array
        results = []
        for function in (mine, other):
            out = (number * 8)()
            done = function(
                len(shape), (number * 8)(*shape), (number * 8)(*strides), len(wanted),
                (number * 8)(*wanted), out, 8, order,
            )  # fmt: skip
            results.append((done, out[: len(wanted)] if done else []))
        assert results[0] == results[1], (shape, strides, wanted, order)
        counts[results[0][0]] += 1
    assert min(counts) > 500
