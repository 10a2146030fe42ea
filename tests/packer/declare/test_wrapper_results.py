"""Wrappers: several results, text that is released, errno, defaults, other symbols."""

from __future__ import annotations

import ctypes

import pytest

from ...support.every_code import CodesLibrary, Header, address, array, items_of, text_of
from ...support.wrapped_library import Any16, floating, integer, small, tensor

DOUBLES = (ctypes.c_double * 4)(1, 2, 3, 6)
X = tensor((4,), (2, 64, 1), data=ctypes.addressof(DOUBLES))


def test_results_of_a_call_are_one_array(codes: CodesLibrary) -> None:
    """The result, then the ones that are written through pointers; ffi.Array is looked up once."""
    count, mean, peak = items_of(codes.call("stats", X, integer(4)))
    assert (count.v_int64, mean.v_float64, peak.v_float64) == (4, 3, 6)
    codes.call("stats", X, integer(4))
    assert codes.lookups.count(b"ffi.Array") == len(codes.lookups) == 1


def test_one_result_is_itself(codes: CodesLibrary) -> None:
    """The only result, if the function returns nothing."""
    assert codes.call("only_mean", X, integer(4)).v_float64 == 3
    message = codes.refusal("only_mean", X, integer(4), integer(1))[1]
    assert message.startswith("only_mean: expected 2 arguments, found 3")


def test_a_status_is_no_result(codes: CodesLibrary) -> None:
    """Its failure is an error; otherwise only what was written is returned."""
    half, even, letter = items_of(codes.call("checked", integer(6)))
    assert (half.v_int64, even.type_index, even.v_int64, letter.v_int64) == (3, 2, 1, 97)
    assert codes.refusal("checked", integer(-1)) == ("ValueError", "negative")


def test_text_is_copied_and_released(codes: CodesLibrary) -> None:
    """Small and long text; NULL becomes None and is not released."""
    before = codes.call("frees").v_int64
    for count in (1, 100):
        assert text_of(codes.call("repeated", small(b"ab"), integer(count))) == "ab" * count
    assert text_of(codes.call("repeated", small(b"ab"), integer(-1))) is None
    assert codes.call("frees").v_int64 == before + 2


def test_text_and_structs_are_written_through_pointers(codes: CodesLibrary) -> None:
    """The Array owns its items; the C text was released."""
    before = codes.call("frees").v_int64
    number, text, point = items_of(codes.call("described", integer(50)))
    assert (number.v_int64, text_of(text)) == (5, "ab" * 50)
    assert [x.v_float64 for x in items_of(point)] == [50, 1]
    assert Header.from_address(text.v_int64).combined_ref_count == 1 | 1 << 32
    assert codes.call("frees").v_int64 == before + 1
    name, what = items_of(codes.call("named", integer(1)))
    assert (text_of(name), text_of(what)) == ("name", "one")
    assert text_of(items_of(codes.call("named", integer(0)))[1]) is None


def test_a_handle_is_written_through_a_pointer(codes: CodesLibrary) -> None:
    """Beside the result."""
    status, handle = items_of(codes.call("counter_open", integer(3)))
    assert (status.v_int64, handle.type_index) == (0, 4)
    assert codes.call("counter_next", handle).v_int64 == 3
    codes.call("counter_free", handle)
    status, handle = items_of(codes.call("counter_open", integer(-3)))
    assert (status.v_int64, handle.type_index) == (-1, 0)


@pytest.mark.parametrize(("name", "argument"), [("described", 50), ("counter_open", 3)])
def test_results_are_released_if_no_array_is_made(
    codes: CodesLibrary, name: str, argument: int
) -> None:
    """The text, and the handle, which the caller did not get; the error is that of ffi.Array."""
    frees, living = (codes.call(n).v_int64 for n in ("frees", "living"))
    codes.fail_arrays = True
    assert codes.refusal(name, integer(argument)) == ("MemoryError", "no array")
    codes.fail_arrays = False
    assert codes.call("frees").v_int64 - frees == (name == "described")
    assert codes.call("living").v_int64 == living


def test_errno_is_an_error(codes: CodesLibrary) -> None:
    """-1 of a signed integer, NULL of a pointer."""
    assert codes.call("opened", small(b"ok")).v_int64 == 3
    expected = ("OSError", "[Errno 2] No such file or directory")
    assert codes.refusal("opened", small(b"no")) == expected
    assert bytes(codes.call("found", integer(9))) == bytes(address(9))
    assert codes.refusal("found", integer(0)) == ("OSError", "[Errno 22] Invalid argument")


def test_omitted_arguments_have_their_defaults(codes: CodesLibrary) -> None:
    """From the right; the count is checked against both ends."""
    values = [integer(10), integer(3), floating(5.5), small(b"1234567"), Any16(2, 0, 0)]
    found = [codes.call("scaled", *values[:n]).v_int64 for n in range(1, 6)]
    assert found == [-23, -33, -38, -42, 42]
    for count in (0, 6):
        kind, message = codes.refusal("scaled", *[integer(1)] * count)
        assert kind == "TypeError"
        assert message.startswith(f"scaled: expected 1 to 5 arguments, found {count}; declared as")


def test_a_function_may_have_another_symbol(codes: CodesLibrary) -> None:
    """The wrapper calls the symbol; messages have the declared name."""
    assert codes.call("print_int", integer(4)).v_int64 == 40
    assert codes.refusal("print_int", array())[1].startswith("print_int: argument 1 'a' (int)")
