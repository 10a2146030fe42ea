"""Wrappers: numbers that are not integers: range, half precision, complex, char."""

from __future__ import annotations

import ctypes
import math

import pytest

from ...support.every_code import CodesLibrary, array, items_of
from ...support.wrapped_library import NONE, Any16, floating, integer, tensor

Z128, Z64 = (5, 128, 1), (5, 64, 1)


def complex_of(value: Any16) -> complex:
    """The number that an Array of two Floats holds."""
    real, imaginary = items_of(value)
    assert real.type_index == imaginary.type_index == 3
    return complex(real.v_float64, imaginary.v_float64)


def test_a_char_is_an_integer(codes: CodesLibrary) -> None:
    """In the range of the processor's char."""
    assert codes.call("next_char", integer(65)).v_int64 == 66
    kind, message = codes.refusal("next_char", integer(300))
    assert kind == "OverflowError"
    assert "next_char: argument 1 'c' (char): expected an int in -128 .. 127, found 300" in message


@pytest.mark.parametrize(("name", "greatest"), [("half", 3.4028234663852886e38), ("half16", 65504)])
def test_a_finite_number_that_overflows_is_refused(
    codes: CodesLibrary, name: str, greatest: float
) -> None:
    """The greatest number, infinities and NaN pass; what rounds to infinity does not."""
    assert codes.call(name, floating(greatest)).v_float64 == greatest / 2
    assert codes.call(name, floating(-greatest * 1.00000001)).v_float64 == -greatest / 2
    assert codes.call(name, floating(-math.inf)).v_float64 == -math.inf
    assert math.isnan(codes.call(name, floating(math.nan)).v_float64)
    for value in (1e300, -greatest * 1.01):
        kind, message = codes.refusal(name, floating(value))
        assert kind == "OverflowError"
        assert f"expected a finite number that the type holds, found {value:g}; decl" in message


@pytest.mark.parametrize("name", ["turned", "turned_float"])
def test_a_complex_number_is_an_array_a_tensor_or_a_number(codes: CodesLibrary, name: str) -> None:
    """All forms give the same number; the result is an Array."""
    doubles, floats = (ctypes.c_double * 2)(3, 4), (ctypes.c_float * 2)(3, 4)
    forms = [
        array(floating(3), integer(4)),
        tensor((), Z128, data=ctypes.addressof(doubles)),
        tensor((1, 1), Z64, data=ctypes.addressof(floats)),
    ]
    assert [complex_of(codes.call(name, form)) for form in forms] == [-4 + 3j] * 3
    assert complex_of(codes.call(name, integer(3))) == 3j
    assert complex_of(codes.call(name, floating(0.5))) == 0.5j


@pytest.mark.parametrize(
    "value",
    [
        NONE,
        array(floating(1)),
        array(),
        tensor((2,), Z64),
        tensor((), (2, 64, 1)),
        tensor((), Z64, device=(2, 0)),
        tensor((), Z64, data=None),
    ],
)
def test_what_is_no_complex_number_is_refused(codes: CodesLibrary, value: Any16) -> None:
    """A wrong size, dtype or device."""
    kind, message = codes.refusal("turned", value)
    assert kind == "TypeError"
    assert (
        "(double _Complex): expected a number, an array of two numbers or a complex tensor of one"
        " element, found " in message
    )


def test_a_part_of_a_complex_number_is_checked(codes: CodesLibrary) -> None:
    """The message names the item; a part that overflows is refused."""
    message = codes.refusal("turned", array(integer(1), NONE))[1]
    assert (
        "turned: argument 1 'z' item 1 (double _Complex): expected a float, found None" in message
    )
    assert codes.refusal("turned_float", array(integer(1), floating(1e300)))[0] == "OverflowError"
