"""Arguments and results: a function of a library takes and returns what Numba's own does."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import packer

from .conftest import EXAMPLES


@pytest.fixture(scope="module")
def own() -> ModuleType:
    """The functions as Numba runs them."""
    spec = importlib.util.spec_from_file_location("values", EXAMPLES / "values.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _same(here: Any, there: Any) -> None:
    if isinstance(here, tuple):
        assert isinstance(there, tuple) and len(here) == len(there)
        for one, other in zip(here, there, strict=True):
            _same(one, other)
    elif isinstance(here, np.ndarray):
        found = np.from_dlpack(there)
        assert found.dtype == here.dtype and found.shape == here.shape
        assert found.tobytes() == here.tobytes()
    else:
        assert here == there and type(here) is type(there)


_X = np.arange(24.0).reshape(4, 6)
_CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("dist", (np.array([3.0, 4.0]),)),
    ("dist", (np.empty(0),)),
    ("scale", (_X, 2.0)),
    ("scale", (_X.T, 0.5)),
    ("scale", (_X[::2, ::-3], 1)),
    ("first_row", (_X,)),
    ("first_column", (np.asfortranarray(_X),)),
    ("of_nothing", (np.array(2.5),)),
    ("several", (5,)),
    ("several", (0,)),
    ("nested", (((1.0, 2.0), 3),)),
    ("turn", (1 + 2j,)),
    ("small", (True, -1, 2**64 - 1)),
    ("repeat", ("abc", 2)),
    ("repeat", ("ü€😀", 3)),
    ("repeat", ("", 0)),
    ("count_zeros", (b"a\0b\0",)),
    ("or_none", (None,)),
    ("or_none", (1,)),
    ("or_none", (-1,)),
    ("double", (1,)),
    ("double", (1.5,)),
    ("double", (np.arange(3.0),)),
    ("double", (np.arange(3, dtype=np.float32),)),
    ("layout", (_X,)),
    ("layout", (_X.T,)),
    ("layout", (_X[::2, ::2],)),
    ("layout", (_X[0],)),
    ("frozen", (3,)),
    ("parallel", (np.linspace(0, 9, 1001),)),
    ("recursive", (15,)),
    ("sorted_backwards", (7,)),
]


@pytest.mark.parametrize(("name", "arguments"), _CALLS)
def test_a_call_returns_what_numba_returns(
    values: Any, own: ModuleType, name: str, arguments: tuple[Any, ...]
) -> None:
    """The same bits, types and shapes."""
    _same(getattr(own, name)(*arguments), values[name](*arguments))


def test_a_named_tuple_is_passed_and_returned_as_a_tuple(values: Any, own: ModuleType) -> None:
    """A library has no classes."""
    assert values["turned"](own.Point(1.0, 2)) == (2.0, 1)


def test_a_function_writes_to_the_array_of_its_caller(values: Any) -> None:
    """Also through strides."""
    x = np.zeros(6)
    values["fill"](x[::2], 1.5)
    assert x.tolist() == [1.5, 0, 1.5, 0, 1.5, 0]


def test_a_read_only_array_is_passed_only_where_the_signature_allows_it(values: Any) -> None:
    """As Numba's dispatcher does."""
    x = np.arange(3.0)
    x.flags.writeable = False
    assert values["total"](x) == 3.0
    with pytest.raises(
        ValueError, match=r"fill: argument 1 'x': expected float64\[:\], found .*read-only"
    ):
        values["fill"](x, 1.0)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text"),
    [
        (
            "dist",
            (np.zeros(2, np.float32),),
            ValueError,
            r"expected float64\[::1\], found float32\[2\]",
        ),
        ("dist", (np.zeros(4)[::2],), ValueError, r"found float64\[2\] on cpu with strides \[2\]"),
        ("dist", (np.zeros((2, 2)),), ValueError, r"found float64\[2, 2\]"),
        ("dist", (1.0,), TypeError, "found float"),
        ("dist", (), TypeError, "expected 1 argument, found 0"),
        (
            "scale",
            (_X, "a"),
            TypeError,
            r"argument 2 'factor' \(float64\): expected a float, found str",
        ),
        ("double", ("a",), TypeError, r"no signature for \(str\), expected one of \(float64\)"),
        (
            "nested",
            (((1.0,), 3),),
            TypeError,
            r"expected tuple\[tuple\[float64, float64\], int64\]",
        ),
        ("small", (True, 1, -1), OverflowError, "argument 3 'c': expected uint64, found -1;"),
    ],
)
def test_an_argument_of_another_type_is_refused(
    values: Any, name: str, arguments: tuple[Any, ...], kind: type[Exception], text: str
) -> None:
    """The message has the argument, the type and what was found."""
    with pytest.raises(kind, match=text):
        values[name](*arguments)


def test_a_default_is_a_default_of_the_loaded_function(values: Any) -> None:
    """By position and by name."""
    assert values["by_default"](2.0) == 5.0
    assert values["by_default"](2.0, y=3.0) == 6.0


def test_the_docstring_and_the_types_are_those_of_the_python_function(values: Any) -> None:
    """They are facts of the library."""
    assert values["dist"].__doc__.startswith("The length of a vector.")
    assert values["dist"].signature == "float64 dist(float64[::1] x)"


def test_a_returned_array_outlives_the_library(values_library: Path) -> None:
    """The tensor owns Numba's memory."""
    import gc

    import runtime

    made = runtime.load(values_library)["scale"](_X, 3.0)
    gc.collect()
    assert (np.from_dlpack(made) == _X * 3.0).all()


def test_a_module_runs_before_it_is_exported() -> None:
    """It is exported to a temporary library."""

    def hypotenuse(a: float, b: float) -> float:
        return math.sqrt(a * a + b * b)

    module = packer.from_numba(hypotenuse, "float64(float64, float64)")
    assert module["hypotenuse"](3.0, 4.0) == 5.0
