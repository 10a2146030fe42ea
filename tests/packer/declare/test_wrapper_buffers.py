"""Wrappers: extents, bytes, void pointers, structs by pointer, arrays of text, handles."""

from __future__ import annotations

import ctypes

import pytest

from ...support.every_code import CodesLibrary, address, array, raw_bytes
from ...support.wrapped_library import NONE, RAW, Any16, floating, heap, integer, small, tensor

F64, U8, I8 = (2, 64, 1), (1, 8, 1), (0, 8, 1)
DOUBLES = (ctypes.c_double * 12)(*range(12))


def doubles(*shape: int, **more: int) -> Any16:
    """A tensor of the first of twelve doubles."""
    return tensor(shape, F64, data=ctypes.addressof(DOUBLES), **more)


@pytest.mark.parametrize(
    ("shape", "extents"),
    [((3, 4), (3, 4)), ((12,), (3, 4)), ((5, 4), (3, 4)), ((2, 2, 3), (3, 4)), ((0,), (5, 0))],
)
def test_an_array_of_enough_elements_is_taken(
    codes: CodesLibrary, shape: tuple[int, ...], extents: tuple[int, int]
) -> None:
    """The same extents, more rows, or another number of dimensions."""
    rows, columns = map(integer, extents)
    expected = sum(i * extents[1] + i for i in range(min(extents)))
    assert codes.call("trace", doubles(*shape), rows, columns).v_float64 == expected


@pytest.mark.parametrize(
    ("shape", "extents", "expected"),
    [
        ((11,), (3, 4), "at least 12 elements for [3, 4], found float64[11] on cpu"),
        ((4, 3), (3, 4), "extent 4 of axis 1, found 3 in float64[4, 3] on cpu"),
        ((2, 4), (3, 4), "at least 12 elements for [3, 4], found float64[2, 4] on cpu"),
        ((12,), (-1, 4), "extents of at least 0, found [-1, 4]"),
        ((12,), (2**32, 2**32), "at least 18446744073709551615 elements for"),
        ((12,), (2**62, 4), "at least 18446744073709551615 elements for"),
    ],
)
def test_an_array_that_is_too_short_is_refused(
    codes: CodesLibrary, shape: tuple[int, ...], extents: tuple[int, int], expected: str
) -> None:
    """The product may overflow; extents may be negative."""
    kind, message = codes.refusal("trace", doubles(*shape), *map(integer, extents))
    assert kind == "ValueError"
    assert f"trace: argument 1 'x' (double *): expected {expected}" in message


def test_an_extent_is_a_number_or_a_parameter(codes: CodesLibrary) -> None:
    """None is refused in place of an array with extents, even of none."""
    assert codes.call("total", doubles(12), integer(4)).v_float64 == 6
    assert codes.call("total", doubles(0), integer(0)).v_float64 == 0
    for name, rest in (("total", [integer(0)]), ("four", [])):
        kind, message = codes.refusal(name, NONE, *rest)
        assert kind == "TypeError"
        assert "expected at least " in message
        assert ", found None" in message
    assert "at least 4 elements for [4]" in codes.refusal("four", tensor((3,)))[1]


def test_an_unsigned_extent_is_not_negative(codes: CodesLibrary) -> None:
    """Beyond int64 it is too large for any array; bytes have a size."""
    assert codes.call("counted", raw_bytes(b"abcdefghi"), integer(9)).v_int64 == 9
    message = codes.refusal("counted", raw_bytes(b"abcdefghi"), integer(2**64 - 1))[1]
    assert "elements for [9223372036854775807], found bytes of size 9" in message
    assert codes.refusal("counted", NONE, integer(0))[0] == "TypeError"


def test_char_pointers_take_tensors_of_bytes(codes: CodesLibrary) -> None:
    """Of both integer types; None is NULL; bytes cannot be written."""
    data = ctypes.create_string_buffer(b"abcd")
    for dtype in (U8, I8):
        codes.call("fill", tensor((4,), dtype, data=ctypes.addressof(data)), integer(2))
    assert data.value == b"xxcd"
    codes.call("fill", NONE, integer(9))
    kind, message = codes.refusal("fill", raw_bytes(b"abc"), integer(1))
    assert kind == "TypeError"
    assert "tensor of int8 or uint8 or None, found bytes" in message
    assert codes.refusal("fill", heap(b"abc"), integer(1))[0] == "TypeError"


def test_const_bytes_are_tensors_or_bytes(codes: CodesLibrary) -> None:
    """Small and heap Bytes; both dtypes; others are refused."""
    value = raw_bytes(b"0123456789")
    assert codes.call("address", value).v_int64 == ctypes.addressof(value.target.buffer)
    assert codes.call("address", tensor((3,), I8)).v_int64 == 4096
    assert codes.call("writable", tensor((3,), U8)).v_int64 == 4096
    assert codes.call("address", NONE).v_int64 == 0
    assert codes.refusal("writable", value)[0] == "TypeError"
    kind, message = codes.refusal("address", tensor((3,), F64))
    assert (kind, "of int8 or uint8, found float64[3] on cpu" in message) == ("TypeError", True)
    assert "uint8, bytes or None, found int" in codes.refusal("address", integer(1))[1]
    assert codes.refusal("address", Any16(66))[0] == "TypeError"
    assert codes.refusal("address", Any16(12, 8))[0] == "TypeError"
    assert codes.refusal("address", tensor((3,), U8, strides=(2,)))[0] == "ValueError"


def test_void_pointers_take_addresses_and_bytes(codes: CodesLibrary) -> None:
    """Bytes only if const."""
    assert codes.call("first", Any16(12, 3, 0x636261)).v_int64 == 0x61
    assert codes.call("first", raw_bytes(b"zz")).v_int64 == ord("z")
    for name in ("anything", "anything_writable"):
        assert codes.call(name, address(77)).v_int64 == 77
        assert codes.call(name, tensor((3,), F64, offset=1)).v_int64 == 4097
        assert codes.call(name, NONE).v_int64 == 0
    message = codes.refusal("anything", RAW)[1]
    assert "a contiguous CPU tensor, bytes, an opaque pointer or None, found str" in message
    assert codes.refusal("anything_writable", raw_bytes(b"z"))[0] == "TypeError"


def test_structs_by_pointer_are_bytes(codes: CodesLibrary) -> None:
    """A tensor of at least one struct, bytes, a handle, None."""
    data = (ctypes.c_double * 4)(3, 0, 10, 0)
    ctypes.c_float.from_buffer(data, 8).value = 4
    there = ctypes.addressof(data)
    assert codes.call("norm", tensor((16,), U8, data=there)).v_float64 == 5
    assert codes.call("norm", raw_bytes(bytes(data))).v_float64 == 5
    assert codes.call("norm", address(there)).v_float64 == 5
    assert codes.call("norm", NONE).v_float64 == -1
    codes.call("shift", tensor((2, 16), U8, data=there), integer(2))
    assert (data[0], data[2]) == (4, 11)
    message = codes.refusal("norm", tensor((15,), U8, data=there))[1]
    assert "(const point *): expected at least 16 bytes, found uint8[15] on cpu" in message
    message = codes.refusal("norm", raw_bytes(b"123"))[1]
    assert "expected at least 16 bytes, found bytes of size 3" in message
    message = codes.refusal("shift", tensor((32,), U8, data=there), integer(3))[1]
    assert "expected at least 48 bytes for [3], found uint8[32] on cpu" in message
    kind, message = codes.refusal("norm", tensor((16,), U8, data=there, offset=4))
    assert kind == "ValueError"
    assert (
        f"expected data aligned to 8 bytes, found address 0x{there + 4:x} of uint8[16]" in message
    )
    assert codes.refusal("shift", raw_bytes(b"1" * 16), integer(1))[0] == "TypeError"
    assert codes.refusal("norm", doubles(2))[0] == "TypeError"


def test_an_array_of_text(codes: CodesLibrary) -> None:
    """Small, heap and raw text; the callee finds NULL after the last."""
    texts = array(small(b"ab"), heap(b"c" * 30), RAW, raw_bytes(b"q" * 9))
    assert codes.call("joined", texts).v_int64 == 44
    assert codes.call("joined", array()).v_int64 == 0
    assert codes.call("joined", NONE).v_int64 == 0
    assert codes.call("joined_n", texts, integer(2)).v_int64 == 32


@pytest.mark.parametrize(
    ("name", "value", "kind", "expected"),
    [
        ("joined", small(b"ab"), "TypeError", "an array of at least 0 str, found str"),
        (
            "joined",
            array(small(b"a"), integer(1)),
            "TypeError",
            "argument 1 'names' item 1 (const char *const *): expected a str, found int",
        ),
        ("joined", array(small(b"a\0b")), "ValueError", "text without NUL, found one at byte 1"),
        ("joined_n", array(), "ValueError", "an array of at least 2 str, found 0"),
        ("joined_n", NONE, "TypeError", "an array of at least 2 str, found None"),
    ],
)
def test_a_wrong_array_of_text_is_refused(
    codes: CodesLibrary, name: str, value: Any16, kind: str, expected: str
) -> None:
    """The message names the item."""
    rest = [integer(2)] if name == "joined_n" else []
    found, message = codes.refusal(name, value, *rest)
    assert (found, expected in message) == (kind, True), message


def test_a_handle_is_an_opaque_pointer(codes: CodesLibrary) -> None:
    """In and out; NULL becomes None."""
    made = codes.call("counter_new", integer(5))
    assert made.type_index == 4
    assert [codes.call("counter_next", made).v_int64 for _ in range(2)] == [5, 6]
    codes.call("counter_free", made)
    assert codes.call("living").v_int64 == 0
    assert bytes(codes.call("counter_new", integer(-1))) == bytes(16)
    assert codes.call("counter_next", NONE).v_int64 == -1
    for value in (integer(1), floating(1), raw_bytes(b"x"), tensor()):
        kind, message = codes.refusal("counter_next", value)
        assert kind == "TypeError"
        assert "(counter *): expected a handle (an opaque pointer) or None, found " in message
