"""Functions of elements broadcast as NumPy's do; a function for C callers takes addresses."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from .conftest import EXAMPLES

pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")


@pytest.fixture(scope="module")
def own() -> ModuleType:
    """The functions as NumPy calls them."""
    spec = importlib.util.spec_from_file_location("elements", EXAMPLES / "elements.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_X = np.random.default_rng(1).random((3, 4, 5))
_CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("add", (_X, _X[0, :, :1])),
    ("add", (_X, 2.0)),
    ("add", (_X[:, ::2], _X[:1, ::2, ::-1])),
    ("add", (_X.T, _X.T)),
    ("add", (1, 2)),
    ("add", (1.5, 2)),
    ("add", (np.empty((0, 3)), np.empty((1, 3)))),
    ("add", (_X.astype(np.float32), _X[0].astype(np.float32))),
    ("add", ((_X * 9).astype(np.int64), 3)),
    ("root", (_X,)),
    ("root", (4.0,)),
    ("less", (np.arange(5, dtype=np.int32), np.full(5, 3, np.int32))),
    ("shift", (_X, 2.0)),
    ("shift", (_X[0], _X[:, :1, 0])),
    ("product", (_X, _X[0].T)),
    ("product", (_X[:, None, :2, :3], _X[0, :3, :2])),
    ("ends", (_X,)),
    ("ends", (_X[0, 0],)),
]


@pytest.mark.parametrize(("name", "arguments"), _CALLS)
def test_results_are_those_of_numpy(
    elements: Any, own: ModuleType, name: str, arguments: tuple[Any, ...]
) -> None:
    """Any strides, scalars and empty arrays."""
    here, there = getattr(own, name)(*arguments), elements[name](*arguments)
    several = here if isinstance(here, tuple) else (here,)
    found = there if isinstance(there, tuple) else (there,)
    for one, other in zip(several, found, strict=True):
        is_number = isinstance(other, (bool, int, float))
        array = np.asarray(other) if is_number else np.from_dlpack(other)
        assert array.shape == np.shape(one) and (array == one).all()


_TYPES = [np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)]
_TYPES += [np.dtype(name) for name in ("?", "f2", "f4", "f8", "c8", "c16")]
_OPERANDS: list[Any] = [np.arange(1, 4).astype(kind) for kind in _TYPES]
_OPERANDS += [kind.type(3) for kind in _TYPES]
_OPERANDS += [np.array(2, np.int32), np.float32([[1.5], [2.5]])[:, ::-1], 1, -1, 1.5, True, 1j]


def _outcome(function: Any, *arguments: Any) -> Any:
    """Return type, shape and bits of a result, or a number; text if there is none."""
    try:
        result = function(*arguments)
    except OverflowError:
        return "overflow"
    except (TypeError, ValueError):
        return "refused"
    if isinstance(result, tuple):  # a complex number
        return complex(*result)
    if not hasattr(result, "dtype") or isinstance(result, np.generic):
        return result
    array = np.from_dlpack(result)
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("name", ["wide_first", "in_turn", "mixed", "exact_first"])
def test_a_call_uses_the_loop_that_numpy_uses(elements: Any, own: ModuleType, name: str) -> None:
    """For each two types of arrays and numbers; what does not have a loop's type is converted."""
    for x in _OPERANDS:
        for y in _OPERANDS:
            expected = _outcome(getattr(own, name), x, y)
            assert _outcome(elements[name], x, y) == expected, (x, y)


@pytest.mark.parametrize("kind", [kind for kind in _TYPES if kind != np.float16])
@pytest.mark.parametrize("out", [kind for kind in _TYPES if kind != np.float16])
def test_an_output_of_another_type_is_converted(
    elements: Any, own: ModuleType, kind: np.dtype[Any], out: np.dtype[Any]
) -> None:
    """If NumPy converts it; any strides and any alignment."""
    x = np.array([1, 2, 2**62 + 1 if kind.itemsize > 7 else 3]).astype(kind)
    places = [np.zeros(6, out)[::2], np.frombuffer(bytearray(49), np.uint8)[1:].view(out)[:3]]
    for place in places:
        results = []
        for function in (own.in_turn, elements["in_turn"]):
            place[:] = 0
            results.append((_outcome(function, x, 0, place) == "refused", place.tobytes()))
        assert results[0] == results[1]


def test_an_output_of_the_caller_is_filled(elements: Any) -> None:
    """By position or name; it may be an input."""
    out = np.zeros_like(_X)
    assert elements["add"](_X, 1.0, out) is None
    assert (out == _X + 1.0).all()
    elements["add"](out, out, out=out)
    assert (out == (_X + 1.0) * 2).all()


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text"),
    [
        ("root", (np.array([1.0, -1.0]),), ValueError, "^negative element; raised by root"),
        ("add", (_X, np.ones(7)), ValueError, "add: expected shapes that broadcast, found"),
        ("add", (_X, "x"), TypeError, r"add: no signature for \(float64\[3, 4, 5\] on cpu, str\)"),
        ("add", (_X, np.ones(5, complex)), TypeError, "no signature"),
        ("in_turn", (np.int8([1]), 300), OverflowError, "argument 2 'y': expected .*, found 300"),
        (
            "less",
            (np.zeros(2, np.int64), 1),
            TypeError,
            r"no signature for \(int64\[2\] on cpu, int",
        ),
        ("wide_first", (_X, _X, np.ones(_X.shape, np.float16)), ValueError, "a writable output"),
        ("product", (_X, np.ones((2, 2))), ValueError, "shapes that broadcast"),
        ("shift", (1.0, 1.0), TypeError, "no signature"),
        ("add", (_X, _X, np.ones(2)), ValueError, "an output of the shape of the result"),
        ("add", (_X, _X, np.ones((3, 4, 5), np.int64)), ValueError, "a writable output"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(
    elements: Any, name: str, arguments: tuple[Any, ...], kind: type[Exception], text: str
) -> None:
    """With the shapes and types that were found."""
    with pytest.raises(kind, match=text):
        elements[name](*arguments)


def test_a_function_for_c_callers_takes_an_address(elements: Any) -> None:
    """An array is passed for it."""
    assert elements["total"](np.arange(5.0), 3) == 3.0
