"""Wrappers: each kind of argument and result is passed."""

from __future__ import annotations

import ctypes

import pytest

from ...support.wrapped_library import (
    ELEMENTS,
    INTEGERS,
    NONE,
    RAW,
    Any16,
    Library,
    StringObject,
    floating,
    heap,
    integer,
    small,
    tensor,
)


def boolean(value: int) -> Any16:
    """A bool."""
    return Any16(2, 0, value)


@pytest.mark.parametrize(("name", "bounds"), INTEGERS.items())
def test_an_integer_in_range_is_accepted(
    library: Library, name: str, bounds: tuple[int, int]
) -> None:
    """Both ends, and a bool; a result beyond int64 is marked."""
    for value in (*bounds, 0, 1):
        result = library.call(f"same_{name}", integer(value))
        assert bytes(result) == bytes(integer(value))
    assert library.call(f"same_{name}", boolean(1)).v_int64 == 1


@pytest.mark.parametrize(("name", "bounds"), INTEGERS.items())
def test_an_integer_out_of_range_is_an_overflow(
    library: Library, name: str, bounds: tuple[int, int]
) -> None:
    """One beyond each end is refused with range and value."""
    low, high = bounds
    for value in (low - 1, high + 1):
        if -(2**63) <= value < 2**64:
            kind, message = library.refusal(f"same_{name}", integer(value))
            assert kind == "OverflowError"
            assert f"expected an int in {low} .. {high}, found {value}; declared as " in message


def test_a_bool_is_true_false_one_or_zero(library: Library) -> None:
    """Bool and int, in and out."""
    for value in (boolean(0), integer(0)):
        assert bytes(library.call("flip", value)) == bytes(boolean(1))
    for value in (boolean(1), integer(1)):
        assert bytes(library.call("flip", value)) == bytes(boolean(0))


def test_a_float_takes_every_number(library: Library) -> None:
    """Float, int, bool, and an int beyond int64."""
    assert library.call("half", floating(3)).v_float64 == 1.5
    assert library.call("twice", integer(-3)).v_float64 == -6
    assert library.call("twice", boolean(1)).v_float64 == 2
    assert library.call("twice", integer(2**63)).v_float64 == 2.0**64
    assert library.call("twice", floating(float("inf"))).type_index == 3


def test_arguments_arrive_in_their_places(library: Library) -> None:
    """Integers and floats of several widths are passed together."""
    values = integer(-1), floating(0.5), integer(60000), floating(0.25), integer(10)
    assert library.call("sum", *values).v_float64 == 60009.75


def test_void_gives_none(library: Library) -> None:
    """The function runs, and the result stays as it was."""
    before = library.call("touches").v_int64
    assert bytes(library.call("touch")) == bytes(16)
    assert library.call("touches").v_int64 == before + 1


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("way", ["at", "in"])
@pytest.mark.parametrize(("name", "dtype"), ELEMENTS.items())
def test_a_pointer_takes_the_data_of_its_dtype(
    library: Library, name: str, dtype: tuple[int, int, int], way: str, as_object: bool
) -> None:
    """A DLTensor or a Tensor object gives data + byte_offset; None gives NULL."""
    made = tensor((2, 3), dtype, offset=64, as_object=as_object)
    assert library.call(f"{way}_{name}", made).v_int64 == 4160
    assert library.call(f"{way}_{name}", NONE).v_int64 == 0


@pytest.mark.parametrize(
    "made",
    [
        tensor((2, 3), strides=(3, 1)),
        tensor((2, 1, 3), strides=(3, 77, 1)),
        tensor((1, 3), strides=(-5, 1)),
        tensor((0, 3), strides=(8, 8)),
        tensor((), strides=()),
        tensor((0,), data=None),
        tensor((3,), device=(3, 0)),
    ],
)
def test_a_layout_that_is_compact_is_taken(library: Library, made: Any16) -> None:
    """Strides of size-1 dimensions and of empty tensors mean nothing; cuda_host is CPU memory."""
    library.call("in_float", made)


def test_a_bool_pointer_takes_both_bool_dtypes(library: Library) -> None:
    """DLPack's bool, and that of legacy TVM."""
    assert library.call("in_bool", tensor(dtype=(1, 1, 1))).v_int64 == 4096
    assert "found uint8[3] on cpu" in library.refusal("in_bool", tensor(dtype=(1, 8, 1)))[1]


def test_a_void_pointer_takes_any_dtype(library: Library) -> None:
    """Elements of any kind at any address, but contiguous and on the CPU."""
    assert library.call("any", tensor(dtype=(4, 16, 1), offset=1)).v_int64 == 4097
    assert library.call("any", NONE).v_int64 == 0
    kind, message = library.refusal("any", tensor(dtype=(4, 16, 1), strides=(2,)))
    assert kind == "ValueError"
    assert "expected a contiguous CPU tensor, found bfloat16[3] on cpu with strides [2]" in message


def test_a_tensor_is_passed_as_it_is(library: Library) -> None:
    """Any device, dtype and layout."""
    wild = tensor((2, 3), (99, 32, 1), strides=(1, 2), device=(2, 1), as_object=True)
    assert library.call("ndim", wild).v_int64 == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (RAW, b"raw"),
        (small(b""), b""),
        (small(b"1234567"), b"1234567"),
        (heap(b""), b""),
        (heap(b"12345678"), b"12345678"),
        (heap("h\xe9".encode() * 500), "h\xe9".encode() * 500),
    ],
)
def test_text_arrives_as_a_c_string(library: Library, value: Any16, text: bytes) -> None:
    """Raw, small and heap strings."""
    assert library.call("length", value).v_int64 == len(text)
    result = library.call("echo", value)
    assert string_of(result) == text


def string_of(result: Any16) -> bytes:
    """Take a string result, and release it as its owner does."""
    if result.type_index == 11:
        return bytes(result)[8 : 8 + result.small_len]
    assert (result.type_index, result.small_len) == (65, 0)
    string = StringObject.from_address(result.v_int64)
    assert (string.combined_ref_count, string.type_index) == (1 | 1 << 32, 65)
    text = ctypes.string_at(string.data, string.size + 1)
    assert text[-1] == 0
    string.deleter(result.v_int64, 1)
    assert ctypes.string_at(string.data, string.size + 1) == text  # weak references live on
    string.deleter(result.v_int64, 2)
    return text[:-1]


@pytest.mark.parametrize(("count", "type_index"), [(0, 11), (3, 11), (7, 11), (8, 65), (1000, 65)])
def test_a_string_result_is_small_or_an_object(
    library: Library, count: int, type_index: int
) -> None:
    """Up to 7 bytes are stored in the value, more on the heap."""
    result = library.call("letters", integer(count))
    assert result.type_index == type_index
    assert string_of(result) == b"a" * count


def test_a_null_string_result_is_none(library: Library) -> None:
    """NULL becomes None, not an empty text."""
    assert bytes(library.call("letters", integer(-1))) == bytes(16)
