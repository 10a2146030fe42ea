"""Arguments and results that contain others: as Numba's dispatcher passes and returns them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core import types

import packer
import runtime


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: float


class Part(NamedTuple):
    """An array, a text and a tuple."""

    values: Any
    name: str
    at: Point


_POINT = types.NamedTuple((types.int64, types.float64), Point)
_ROW, _TABLE = types.float64[::1], types.float64[:, ::1]
_PART = types.NamedTuple((_ROW, types.unicode_type, _POINT), Part)
_BYTES = types.Bytes(types.uint8, 1, "C")
_DEEP = types.Tuple((types.float64, types.Tuple((types.int8, types.UniTuple(_ROW, 1)))))
_READ_ONLY = types.Array(types.complex64, 3, "F", readonly=True)

_X = np.arange(3.0)
_Y = np.arange(6.0).reshape(2, 3)
_F = np.asfortranarray(np.arange(24).reshape(2, 3, 4).astype(np.complex64))
_F.flags.writeable = False
_B = np.arange(12).reshape(3, 4)[::2, ::3] % 2 == 0


def _parts(part: Any) -> Any:
    return part.at.x + 1, part.values * 2, part.name + "é", part


def _or_none(x: Any) -> Any:
    return None if x is None else x


def _layout(x: Any) -> Any:
    return x.shape, x.strides, x.size, x.flags.c_contiguous, x.flags.f_contiguous


def _filled(x: Any, value: Any) -> Any:
    x[...] = value
    return x, x.T, x[::-1]


_CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[tuple[Any, ...]]]] = {
    "named": (_parts, (_PART,), [(Part(_X, "ü", Point(1, 2.0)),)]),
    "arrays": (lambda p: (p[1].sum(), p[0], p), (types.Tuple((_ROW, _TABLE)),), [((_X, _Y),)]),
    "deep": (lambda p: p[1][1][0] + p[0] + p[1][0], (_DEEP,), [((1.0, (3, (_X,))),)]),
    "literals": (lambda n: (n, "é", (None, True, ("b", 2))), (types.int64,), [(1,)]),
    "no_items": (lambda p: p, (types.Tuple(()),), [((),)]),
    "one_item": (lambda p: (p[0] + 1,), (types.UniTuple(types.int64, 1),), [((4,),)]),
    "array_or_none": (_or_none, (types.Optional(_ROW),), [(None,), (_X,)]),
    "text_or_none": (_or_none, (types.Optional(types.unicode_type),), [(None,), ("aé€😀",)]),
    "tuple_or_none": (_or_none, (types.Optional(_POINT),), [(None,), (Point(1, 2.5),)]),
    "items_or_none": (
        lambda p: p,
        (types.Tuple((types.Optional(types.int64), types.Optional(_ROW))),),
        [((None, _X),), ((3, None),)],
    ),
    "bytes_in": (
        lambda p: (len(p[0]), p[1]),
        (types.Tuple((_BYTES, types.int8)),),
        [((b"\0", 3),)],
    ),
    "bytes": (lambda b: b, (_BYTES,), [(b"",), (b"a\0b",)]),
    "complex_in": (
        lambda p: (p[0] * 2, p[1]),
        (types.Tuple((types.complex128, types.complex64)),),
        [((1 + 2j, 3j),)],
    ),
    "none": (lambda x: (None, x), (types.none,), [(None,)]),
    "layout_f": (_layout, (_READ_ONLY,), [(_F,)]),
    "copy_f": (lambda x: x.copy(), (_READ_ONLY,), [(_F,)]),
    "filled": (_filled, (types.Array(types.boolean, 2, "A"), types.boolean), [(_B.copy(), True)]),
    "scalar": (
        lambda x: (x.item(), np.array(x.item() + 1), x),
        (types.Array(types.int16, 0, "C"),),
        [(np.array(-5, np.int16),)],
    ),
    "empty": (lambda n: np.empty((n, 0, 3)), (types.int64,), [(2,)]),
    "seven": (
        lambda x: x.sum(axis=0),
        (types.Array(types.int8, 7, "C"),),
        [(np.ones([2] * 7, "i1"),)],
    ),
    "shared": (lambda x: ((x + 1).reshape(3, 1), x.T, x[1:]), (_ROW,), [(_X,)]),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions in a library."""
    functions = {name: njit(function) for name, (function, _, _) in _CASES.items()}
    signatures: Any = {name: [given] for name, (_, given, _) in _CASES.items()}
    module = packer.NumbaModule(functions, signatures=signatures)
    return runtime.load(
        packer.export_library(module, tmp_path_factory.mktemp("kinds") / "kinds.so")
    )


def _plain(value: Any) -> Any:
    """Return what can be compared: a library has no named tuples, and complex items are pairs."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, complex):
        return (value.real, value.imag)
    if isinstance(value, runtime.Tensor):
        value = np.from_dlpack(value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value


@pytest.mark.parametrize("name", _CASES)
def test_a_call_returns_what_numba_returns(library: Any, name: str) -> None:
    """The same values, shapes and bytes."""
    function, signature, calls = _CASES[name]
    own = njit(signature)(function)
    for arguments in calls:
        assert _plain(library[name](*arguments)) == _plain(own(*arguments))
