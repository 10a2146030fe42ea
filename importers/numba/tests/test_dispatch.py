"""Conversions and the choice of a signature follow Numba's dispatcher."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core import types
from numba.core.registry import cpu_target

import packer
import runtime
from dso_packer_numba.describe import number_code
from dso_packer_numba.dispatch import COSTS

from .conftest import EXAMPLES

_NUMBERS = ["boolean", *(f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32, 64))]
_NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]
_COSTS = {"exact": 0, "promote": 1, "safe": 2, "unsafe": 3}


@pytest.fixture(scope="module")
def own() -> ModuleType:
    """The functions as Numba runs them."""
    spec = importlib.util.spec_from_file_location("overloads", EXAMPLES / "overloads.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions in a library; they are imported by another process."""
    folder = tmp_path_factory.mktemp("overloads")
    made = packer.from_numba(EXAMPLES / "overloads.py")
    assert not made.left_out
    return runtime.load(packer.export_library(made, Path(folder, "overloads.so")))


@pytest.mark.parametrize("kind", [kind for kind in _NUMBERS if kind != "float16"])
def test_the_costs_of_conversions_are_those_of_numba(kind: str) -> None:
    """From each type of number."""
    context = cpu_target.typing_context
    to = getattr(types, kind)
    found = (context.can_convert(getattr(types, source), to) for source in _NUMBERS)
    digits = "".join(str(4 if cost is None else _COSTS[cost.name]) for cost in found)
    assert COSTS[number_code(to)] == digits


_X = np.arange(12.0).reshape(3, 4)
_READ_ONLY = np.arange(3.0)
_READ_ONLY.flags.writeable = False
_VALUES = [True, 3, -3, 2.5, 1 + 2j, "a", None, (1, 2), (1, 2.0), (True, 2)]
_SCALARS: list[Any] = [
    getattr(np, f"{kind}{bits}")(3)
    for kind, widths in (
        ("int", (8, 16, 32, 64)),
        ("uint", (8, 16, 32, 64)),
        ("float", (16, 32, 64)),
    )
    for bits in widths
]
_SCALARS += [
    np.bool_(True),
    np.complex64(1),
    np.complex128(2),
    np.uint64(2**64 - 1),
    np.longlong(-3),
]
_ARRAYS = [_X, _X.T, _X[::2, ::2], _X[0], _X[0, ::2], _X[:1], _READ_ONLY, np.arange(3)]


def _outcome(function: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except TypeError as error:
        text = str(error)
        return "ambiguous" if "mbiguous" in text or "fit equally" in text else "none"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("promoted", [*_VALUES, *_SCALARS]),
        ("narrow", [*_VALUES, *_SCALARS]),
        ("safe", [*_VALUES, *_SCALARS]),
        ("widths", [*_VALUES, *_SCALARS]),
        ("arrays", [*_ARRAYS, 1.0]),
        ("optional", [value for value in _VALUES if value != -3]),
        ("tuples", [value for value in _VALUES if not isinstance(value, complex)]),
        ("narrow_tuples", [(1, np.int8(2)), (np.int32(1), np.float32(2)), (np.int16(1), 2.0)]),
    ],
)
def test_a_call_uses_the_signature_that_numba_uses(
    library: Any, own: ModuleType, name: str, values: list[Any]
) -> None:
    """Or none fits, or several fit equally; a complex number is passed as a pair of floats."""
    here = [_outcome(getattr(own, name), (value,)) for value in values]
    assert [_outcome(library[name], (value,)) for value in values] == here
    assert len(set(map(str, here))) > 1


@pytest.mark.parametrize("x", [True, 3, 2.5, 1j, np.int32(3), np.float32(2)])
@pytest.mark.parametrize("y", [True, 3, 2.5, np.uint8(3), np.float16(2)])
def test_the_worst_conversions_of_a_call_decide(
    library: Any, own: ModuleType, x: Any, y: Any
) -> None:
    """Then how many of them there are."""
    assert _outcome(library["pairs"], (x, y)) == _outcome(own.pairs, (x, y))


def test_arrays_of_exactly_the_type_come_before_conversions(library: Any, own: ModuleType) -> None:
    """Numbers are converted first."""
    assert library["exact_first"](np.zeros(3), 1) == own.exact_first(np.zeros(3), 1)
    assert library["exact_first"](np.zeros(6)[::2], 1) == own.exact_first(np.zeros(6)[::2], 1)


_GIVEN = [True, 3, -3, 200, 2**40, 2**63, 2.9, -0.5, -2.9, math.nan, math.inf, 1e20, 1 + 2j]
_GIVEN += [np.int8(-3), np.float32(0.1), np.bool_(True), np.uint64(2**64 - 1), "a", None]


@pytest.mark.parametrize(
    "kind",
    ["boolean", "int8", "uint8", "int64", "uint64", "float32", "float64", "complex64"],
)
@pytest.mark.parametrize("value", _GIVEN)
def test_a_number_is_converted_as_numba_converts_it(
    library: Any, own: ModuleType, kind: str, value: Any
) -> None:
    """A float for an int loses its fraction, an int for int8 all but its lowest bits."""
    answers = []
    for function in (getattr(own, f"as_{kind}"), library[f"as_{kind}"]):
        try:
            answers.append(repr(function(value)))
        except Exception as error:
            answers.append(type(error).__name__)
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("name", "value", "kind", "text"),
    [
        ("as_uint8", -3, OverflowError, "argument 1 'x': expected uint8, found -3;"),
        ("as_int8", math.nan, ValueError, "expected int8, found nan;"),
        ("as_int64", 1e20, OverflowError, r"expected int64, found 1e\+20;"),
        ("as_int64", 2**63, OverflowError, "expected int64, found 9223372036854775808;"),
        ("as_int64", "a", TypeError, "expected int64, found str;"),
        ("narrow", 1, TypeError, r"several signatures fit equally for \(int\), expected one of"),
        ("safe", None, TypeError, r"no signature for \(None\), expected one of \(uint64\); "),
        ("narrow", np.float32(1), TypeError, r"several signatures fit equally for \(float32\), "),
        ("narrow", np.datetime64(1, "s"), TypeError, "unsupported type, .*found numpy.datetime64"),
        ("as_int64", np.timedelta64(1, "s"), TypeError, "unsupported type, .*numpy.timedelta64"),
        ("narrow", np.longdouble(1), TypeError, r"no signature for \(float128\)"),
    ],
)
def test_a_number_that_cannot_be_converted_is_refused(
    library: Any, name: str, value: Any, kind: type[Exception], text: str
) -> None:
    """With the value that was found."""
    with pytest.raises(kind, match=text):
        library[name](value)
