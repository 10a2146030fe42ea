"""Recursion, functions that are values, and callbacks have Numba's results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .conftest import EXAMPLES

pytestmark = pytest.mark.filterwarnings("ignore:First-class function type feature is experimental")


@pytest.fixture(scope="module")
def own() -> ModuleType:
    """The functions as Numba runs them."""
    spec = importlib.util.spec_from_file_location("calls", EXAMPLES / "calls.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions in a library; `apply` has no signature."""
    made = packer.from_numba(EXAMPLES / "calls.py")
    assert set(made.left_out) == {"apply"}
    folder = tmp_path_factory.mktemp("calls")
    return runtime.load(packer.export_library(made, Path(folder, "calls.so")))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ackermann", (2, 3)),
        ("tak", (8, 4, 2)),
        ("twice", (5,)),
        ("twice", (5.5,)),
        ("halves", (5,)),
        ("halves", (2.5,)),
        ("of_a_global_tuple", (3.0,)),
        *((f"of_a_{kind}", (3.0, i)) for kind in ("tuple", "list", "variable") for i in (0, 1)),
        ("of_callbacks", (3.0, 0)),
        ("of_callbacks", (0.0, 1)),
        ("each", (np.arange(3.0),)),
    ],
)
def test_a_call_has_numbas_result(
    library: Any, own: ModuleType, name: str, arguments: tuple[Any, ...]
) -> None:
    """Recursion in an argument; functions with signatures in tuples, lists and variables."""
    expected, found = getattr(own, name)(*arguments), library[name](*arguments)
    assert np.array_equal(found, expected, equal_nan=True)
    assert isinstance(expected, np.ndarray) or type(found) is type(expected)


def test_an_exception_of_a_function_that_is_a_value_is_raised(library: Any) -> None:
    """That of a callback too, which Numba prints instead."""
    with pytest.raises(ValueError, match=r"too large; raised by next_of \(calls.py:\d+\)"):
        library["of_a_tuple"](200.0, 0)
    with pytest.raises(ValueError, match=r"no sum; raised by add \(calls.py:\d+\)"):
        library["of_callbacks"](200.0, 1)


def test_functions_of_this_process_are_values_too(own: ModuleType, tmp_path: Path) -> None:
    """They were compiled before; the process goes on as before."""
    functions = {"call": own.of_a_tuple, "sum": own.of_callbacks, "ackermann": own.ackermann}
    module = packer.NumbaModule(functions)
    loaded = runtime.load(packer.export_library(module, tmp_path / "calls.so"))
    assert loaded["call"](3.0, 1) == own.of_a_tuple(3.0, 1) == 6.0
    assert loaded["ackermann"](2, 3) == own.ackermann(2, 3) == 9
    assert loaded["sum"](3.0, 0) == own.of_callbacks(3.0, 0) == 6.0
