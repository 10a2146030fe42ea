"""Functions of elements broadcast as NumPy's do; a function for C callers takes addresses."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from .conftest import EXAMPLES


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
        ("add", (_X, np.ones(5, np.int16)), TypeError, "no signature"),
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
