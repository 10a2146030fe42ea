"""Arrays of rows: `a[][3]` has whole rows, `a[n][m]` has at least so many."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from packer.declare.metadata import type_schema

from ...support.wrapped_library import parse

CODE = """
typedef double row[3];
typedef row pair[2];
typedef struct { int x, y; } point;
long rows(double a[][3]) { return (long)a; }
long constant(const double a[][3]) { return (long)a; }
long pointed(double (*a)[3]) { return (long)a; }
long typed(row *a) { return (long)a; }
long typed_rows(row a[]) { return (long)a; }
long matrices(double a[][2][3]) { return (long)a; }
long pairs(pair *a) { return (long)a; }
long pair_rows(pair a[]) { return (long)a; }
long wide(int n, float a[][n]) { return (long)a; }
long points(point a[][3]) { return (long)a; }
long field(int n, int m, const point a[n][m]) { return (long)a; }
long lines(char a[][4]) { return (long)a; }
long names(const char a[][4]) { return (long)a; }
long fixed(double a[2][3]) { return (long)a; }
long whole(pair a) { return (long)a; }
"""
POINT = np.dtype([("x", "i4"), ("y", "i4")])
ROWS = ("rows", "constant", "pointed", "typed", "typed_rows")
MATRICES = ("matrices", "pairs", "pair_rows")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """A function of each form."""
    module = packer.CSourceModule(CODE, functions="auto")
    return runtime.load(packer.export_library(module, tmp_path_factory.mktemp("rows") / "rows.so"))


def array(*shape: int, dtype: Any = "f8") -> Any:
    """Zeros."""
    return np.zeros(shape, dtype)


def accepts(model: runtime.Module, name: str, *values: Any) -> None:
    """The function gets the address."""
    assert model[name](*values) == values[-1].ctypes.data


def refuses(model: runtime.Module, name: str, expected: str, *values: Any) -> None:
    """The message says what is wrong with the shape."""
    text = re.escape(f": expected {expected}; declared as ")
    with pytest.raises(ValueError, match=rf"^{name}: argument \d 'a' \(.*\){text}"):
        model[name](*values)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (0, 3), (6,), (0,), (2, 2, 3)])
def test_whole_rows_are_accepted(model: runtime.Module, name: str, shape: tuple[int, ...]) -> None:
    """Also in a flat array, since the number of rows is the function's business."""
    accepts(model, name, array(*shape))


@pytest.mark.parametrize("name", ROWS)
def test_other_rows_are_refused(model: runtime.Module, name: str) -> None:
    """The axis is named if the array has rows, else the row."""
    refuses(model, name, "extent 3 of axis 1, found 4 in float64[2, 4] on cpu", array(2, 4))
    refuses(model, name, "extent 3 of axis 1, found 2 in float64[3, 2] on cpu", array(3, 2))
    row = "whole rows of 3 elements for [3]"
    refuses(model, name, f"{row}, found float64[2] on cpu", array(2))
    refuses(model, name, f"{row}, found float64[7] on cpu", array(7))


@pytest.mark.parametrize("name", MATRICES)
def test_rows_may_be_matrices(model: runtime.Module, name: str) -> None:
    """Each inner axis is compared."""
    accepts(model, name, array(5, 2, 3))
    accepts(model, name, array(12))
    refuses(model, name, "extent 2 of axis 1, found 3 in float64[5, 3, 2] on cpu", array(5, 3, 2))
    refuses(model, name, "extent 3 of axis 2, found 4 in float64[5, 2, 4] on cpu", array(5, 2, 4))
    refuses(model, name, "whole rows of 6 elements for [2, 3], found float64[9] on cpu", array(9))


def test_the_length_of_a_row_may_be_a_parameter(model: runtime.Module) -> None:
    """Rows of no elements have no memory; a negative length is refused."""
    accepts(model, "wide", 4, array(2, 4, dtype="f4"))
    accepts(model, "wide", 0, array(2, 0, dtype="f4"))
    wrong = array(2, 3, dtype="f4")
    refuses(model, "wide", "extent 4 of axis 1, found 3 in float32[2, 3] on cpu", 4, wrong)
    refuses(model, "wide", "extents of at least 0, found [-1]", -1, wrong)
    row = "whole rows of 0 elements for [0], found float32[6] on cpu"
    refuses(model, "wide", row, 0, wrong.reshape(6))


def test_rows_of_structs(model: runtime.Module) -> None:
    """A structured array has the shape of its structs; a mapping is one struct."""
    accepts(model, "points", array(2, 3, dtype=POINT))
    accepts(model, "points", array(3, dtype=POINT))
    wrong = array(3, 4, dtype=POINT)
    refuses(model, "points", "extent 3 of axis 1, found 4 in uint8[3, 4, 8] on cpu", wrong)
    refuses(model, "field", "extent 3 of axis 1, found 4 in uint8[3, 4, 8] on cpu", 4, 3, wrong)
    accepts(model, "field", 3, 4, wrong)
    row = "whole rows of 24 bytes for [3]"
    refuses(model, "points", f"{row}, found uint8[2, 8] on cpu", array(2, dtype=POINT))
    refuses(model, "points", f"{row}, found uint8[8] on cpu", {"x": 1})


def test_rows_of_char(model: runtime.Module) -> None:
    """They are bytes, not text: nothing terminates a row."""
    assert model["names"](b"abcdefgh") and model["lines"](bytearray(8))
    row = "whole rows of 4 elements for [4]"
    refuses(model, "names", f"{row}, found bytes of size 7", b"abcdefg")
    refuses(model, "lines", f"{row}, found uint8[7] on cpu", bytearray(7))
    with pytest.raises(TypeError, match="expected a contiguous CPU tensor of int8 or uint8, bytes"):
        model["names"]("abcd")


@pytest.mark.parametrize("name", ["fixed", "whole"])
def test_a_shape_that_differs_is_named_by_its_axis(model: runtime.Module, name: str) -> None:
    """The number of elements is right, their places are not."""
    refuses(model, name, "extent 3 of axis 1, found 2 in float64[3, 2] on cpu", array(3, 2))
    short = "at least 6 elements for [2, 3], found float64[1, 3] on cpu"
    refuses(model, name, short, array(1, 3))


def test_null_is_none(model: runtime.Module) -> None:
    """The number of rows may be 0, so a pointer to rows may be NULL."""
    assert model["rows"](None) == 0
    assert (
        type_schema(parse("void(double a[][3])"))["named_args"]["params"][0]["type"] == "Optional"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("void(double (*a)[3])", "*f64[][3]"),
        ("void(const double (*a)[2][3])", "&f64[][2][3]"),
        ("void(int n, const float (*a)[n])", "&f32[][n]"),
        ("void(char a[])", "*char"),
        ("void(const char a[])", "str"),
        ("void(double a[][*])", "*f64"),
    ],
)
def test_the_code_names_the_rows(text: str, code: str) -> None:
    """A pointer to an array is an array of rows; one axis alone has no rows."""
    assert parse(text).parameters[-1].code == code


def test_a_callback_gets_an_address_for_rows() -> None:
    """Their number is not known."""
    (callback,) = parse("void(void (*f)(double a[][3], const char b[][4]))").callbacks
    assert [parameter.code for parameter in callback.parameters] == ["*void", "*void"]
