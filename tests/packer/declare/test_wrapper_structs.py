"""Wrappers: structs by value."""

from __future__ import annotations

import pytest

from ...support.every_code import CodesLibrary, array, items_of, text_of
from ...support.wrapped_library import NONE, Any16, floating, integer, small, tensor

LOW, HIGH = array(integer(1), floating(2)), array(floating(3), integer(4))


def box(*, flags: Any16 | None = None, high: Any16 = HIGH, name: Any16 | None = None) -> Any16:
    """A box; parts may be wrong."""
    numbers = array(integer(1), integer(2), integer(3))
    return array(LOW, high, flags or numbers, integer(0), name or small(b"box"))


def test_a_struct_is_an_array_of_its_fields(codes: CodesLibrary) -> None:
    """Numbers of several types, in and out."""
    x, y = items_of(codes.call("mirrored", array(floating(1.5), integer(-2))))
    assert (x.v_float64, y.v_float64) == (-1.5, 2)


def test_a_struct_may_contain_structs_arrays_and_text(codes: CodesLibrary) -> None:
    """Each level is an Array."""
    low, high, flags, ok, name = items_of(codes.call("grown", box()))
    assert [x.v_float64 for x in items_of(low)] == [1, 2]
    assert [x.v_float64 for x in items_of(high)] == [4, 4]
    assert [x.v_int64 for x in items_of(flags)] == [1, 2, 4]
    assert (ok.type_index, ok.v_int64, text_of(name)) == (2, 1, "box")


def test_a_struct_may_contain_complex_numbers_and_grids(codes: CodesLibrary) -> None:
    """Arrays of arrays; half precision."""
    grid = array(array(integer(1), integer(2)), array(integer(3), integer(4)))
    z, cells, h = items_of(
        codes.call("oddly", array(array(integer(1), integer(2)), grid, integer(3)))
    )
    assert [x.v_float64 for x in items_of(z)] == [2, 4]
    assert [[x.v_int64 for x in items_of(row)] for row in items_of(cells)] == [[1, 2], [7, 4]]
    assert h.v_float64 == 3


@pytest.mark.parametrize(
    ("name", "value", "kind", "expected"),
    [
        (
            "mirrored",
            array(small(b"a"), integer(1)),
            "TypeError",
            "mirrored: argument 1 'p' field 'x' (double): expected a float, found str; declared as",
        ),
        (
            "mirrored",
            array(integer(1), floating(1e300)),
            "OverflowError",
            "argument 1 'p' field 'y' (float): expected a finite number that",
        ),
        ("mirrored", array(integer(1)), "ValueError", "expected an array of 2 fields, found 1;"),
        ("mirrored", NONE, "TypeError", "(point): expected an array of 2 fields, found None"),
        ("mirrored", tensor(), "TypeError", "expected an array of 2 fields, found float32[3]"),
        (
            "grown",
            box(high=array(integer(1), NONE)),
            "TypeError",
            "argument 1 'b' field 'high' field 'y' (float): expected a float, found None",
        ),
        (
            "grown",
            box(flags=array(integer(1), integer(2), integer(999))),
            "OverflowError",
            "field 'flags' item 2 (int8_t): expected an int in -128 .. 127, found 999",
        ),
        (
            "grown",
            box(flags=array()),
            "ValueError",
            "field 'flags' (int8_t): expected an array of 3 items, found 0",
        ),
        ("grown", box(name=integer(1)), "TypeError", "field 'name' (const char *): expected a str"),
    ],
)
def test_a_message_names_the_field(
    codes: CodesLibrary, name: str, value: Any16, kind: str, expected: str
) -> None:
    """At each level."""
    found, message = codes.refusal(name, value)
    assert (found, expected in message) == (kind, True), message
