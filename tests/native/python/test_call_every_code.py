"""Wrappers of every code, called by the runtime."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import runtime

from ...support import every_code
from ...support.wrapped_library import build_declared

POINT = np.dtype([("x", "f8"), ("y", "f4")], align=True)
X = np.array([1.0, 2.0, 6.0])


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """The library that the tests of wrappers call."""
    folder = tmp_path_factory.mktemp("codes")
    return runtime.load(build_declared(folder, every_code.CODE, every_code.DECLARATIONS, "-w"))


def points(*xs: float) -> np.ndarray:
    """Points with these x."""
    return np.array([(x, 0) for x in xs], POINT)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("next_char", (97,), 98),
        ("half", (float("inf"),), float("inf")),
        ("half16", (3.0,), 1.5),
        ("turned", (1 + 2j,), -2 + 1j),
        ("turned", (np.array([1 + 2j]),), -2 + 1j),
        ("turned_float", (np.complex64(2),), 2j),
        ("turned_float", (2.5,), 2.5j),
        ("counted", (b"abc", 3), 3),
        ("counted", (bytearray(3), 2), 2),
        ("first", (b"a",), 97),
        ("first", (None,), -1),
        ("joined", (["a", "bcd"],), 4),
        ("joined", ((),), 0),
        ("joined_n", (("a", "bc"), 2), 3),
        ("counter_next", (None,), -1),
        ("counter_open", (-1,), (-1, None)),
        ("mirrored", ((1.5, 2),), (-1.5, -2)),
        ("mirrored", ({"y": 2},), (0, -2)),
        ("mirrored", (points(3)[0],), (-3, 0)),
        ("norm", ({"x": 3, "y": 4},), 5.0),
        ("norm", ((3, 4),), 5.0),
        ("norm", (points(7),), 7.0),
        ("norm", (points(7).tobytes(),), 7.0),
        ("norm", (None,), -1.0),
        ("stats", (X, 3), (3, 3.0, 6.0)),
        ("only_mean", (X, 3), 3.0),
        ("checked", (4,), (2, True, 97)),
        ("repeated", ("ab", 3), "ababab"),
        ("described", (2,), (5, "abab", (2.0, 1.0))),
        ("described", (-1,), (5, None, (-1.0, 1.0))),
        ("named", (0,), ("name", None)),
        ("print_int", (3,), 30),
    ],
)
def test_value(codes: runtime.Module, name: str, args: tuple[Any, ...], expected: object) -> None:
    """Arguments and results of each code."""
    assert codes[name](*args) == expected


@pytest.mark.parametrize(
    ("name", "args", "error", "expected"),
    [
        ("half", (1e300,), OverflowError, "expected a finite number that the type holds"),
        ("turned_float", (1e300j,), OverflowError, "expected a finite number that the type holds"),
        ("total", (X, 4), ValueError, "expected at least 4 elements"),
        ("counted", (b"abc", 4), ValueError, "expected at least 4 elements"),
        ("writable", (b"abc",), TypeError, "pass a bytearray or a NumPy array"),
        ("joined", (["a", 3],), TypeError, "argument 1 'names' item 1 .*expected a str, found int"),
        ("joined_n", (["a"], 2), ValueError, "expected an array of at least 2 str, found 1"),
        ("mirrored", ({"x": "a"},), TypeError, "field 'x' .*expected a float, found str"),
        ("oddly", ({"grid": [[1, 2]]},), ValueError, "field 'grid': expected 2 items, found 1"),
        ("norm", (b"x" * 15,), ValueError, "expected at least 16 bytes, found bytes of size 15"),
        ("norm", (np.zeros(2),), TypeError, "expected a contiguous CPU tensor of uint8"),
        ("opened", ("none",), FileNotFoundError, "No such file"),
        ("integral", (3, None, 0.0, 1.0), TypeError, "expected a function or None, found int"),
    ],
)
def test_refusal(
    codes: runtime.Module,
    name: str,
    args: tuple[Any, ...],
    error: type[Exception],
    expected: str,
) -> None:
    """The core or the wrapper names what is wrong."""
    with pytest.raises(error, match=expected):
        codes[name](*args)


def test_struct_with_everything(codes: runtime.Module) -> None:
    """Structs, arrays, text and complex numbers in structs."""
    given = {"low": {"x": 1}, "high": (2, 3), "flags": [1, 2, 3], "ok": True, "name": "box"}
    box = codes["grown"](given)
    assert box == ((1, 0), (3, 3), (1, 2, 4), False, "box")
    assert codes["grown"](box).high.x == 4
    odd = codes["oddly"]({"z": 1 + 2j, "grid": np.eye(2, dtype=int), "h": 0.5})
    assert odd == (2 + 4j, ((1, 0), (7, 1)), 0.5)


def test_array_of_structs_is_written(codes: runtime.Module) -> None:
    """The extent counts structs."""
    given = points(1, 2, 3)
    codes["shift"](given, 3)
    assert given["x"].tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="expected at least 64 bytes"):
        codes["shift"](given, 4)
    one = {"x": 1.0}
    codes["shift"](one, n=1)
    assert one == {"x": 2.0, "y": 0.0}


def test_handles_are_released(codes: runtime.Module) -> None:
    """As a result and through an out parameter."""
    before = codes["living"]()
    counter, (status, other) = codes["counter_new"](3), codes["counter_open"](5)
    assert (codes["counter_next"](counter), codes["counter_next"](other), status) == (3, 5, 0)
    with pytest.raises(TypeError, match="expected a handle 'point', found a handle 'counter'"):
        codes["norm"](counter)
    assert codes["living"]() == before + 2
    del counter, other
    gc.collect()
    assert codes["living"]() == before


def test_defaults_and_keywords(codes: runtime.Module) -> None:
    """The wrapper fills the end, the runtime fills gaps."""
    scaled = codes["scaled"]
    assert scaled(1) == scaled(1, 2, 0.5) == scaled(x=1, text='a"?', minus=True)
    assert scaled(1, minus=False) == -scaled(1)


def test_callbacks(codes: runtime.Module) -> None:
    """They get numbers, arrays, text, structs and pointers; an error ends the call."""
    integral, seen = codes["integral"], []
    assert integral(lambda x, data: x * x, None, 0.0, 2.0) == 4.0
    integral(lambda x, data: seen.append(data) or x, np.zeros(2), 0.0, 1.0)
    assert [handle.kind for handle in seen] == [None, None]
    with pytest.raises(ZeroDivisionError):
        integral(lambda x, data: 1 / 0, None, 0.0, 1.0)

    def visit(rest: Any, *others: Any) -> bool:
        seen.append((rest.shape, *others))
        return True

    assert codes["each"](X, 3, visit) == 3
    names = ("a", None, "long enough")
    assert seen[-1] == ((1,), 1, "text", names, (1, 2), 2 + 1j, None, 2**64 - 1)
