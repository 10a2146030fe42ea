"""Safe calls: numbers, strings and other plain arguments."""

from __future__ import annotations

import ctypes
import enum
import sys
from array import array
from decimal import Decimal

import numpy as np
import pytest

from runtime._core import Library, TensorBase

from .dlpack_producers import OnlyDLPack, Probe

SOURCE = "probe.c"
# TVMFFITypeIndex (formats: safe call).
NONE, INT, BOOL, FLOAT, TENSOR, RAW_STR, BYTES = 0, 1, 2, 3, 7, 8, 9


class _Level(enum.IntEnum):
    HIGH = 7


def test_function_knows_its_metadata(library: Library) -> None:
    """Name, signature, documentation and owner come from the metadata symbol and the look-up."""
    owner = object()
    add = library.function("add", owner)
    assert add is not None
    assert (add.name, add.signature) == ("add", "int64_t add(int64_t a, int64_t b)")
    assert add.__doc__ == "Add two numbers.\n\nSecond paragraph."
    assert add.owner is owner
    assert repr(add) == "<Function add: int64_t add(int64_t a, int64_t b)>"


def test_function_without_metadata_has_no_signature(probe: Probe) -> None:
    """A library that another tool made can be called without metadata."""
    count = probe("count")
    assert (count.signature, count.__doc__, repr(count)) == (None, None, "<Function count>")


@pytest.mark.parametrize("name", ["missing", "", "add\0", "\udc80", "__tvm_ffi_add"])
def test_unknown_name_is_none(library: Library, name: str) -> None:
    """A missing symbol gives None; the runtime adds the prefix."""
    assert library.function(name, None) is None


@pytest.mark.parametrize(
    ("value", "type_index"),
    [
        (None, NONE),
        (3, INT),
        (_Level.HIGH, INT),
        (np.int8(3), INT),
        (np.uint64(3), INT),
        (True, BOOL),
        (np.bool_(True), BOOL),
        (1.5, FLOAT),
        (np.float16(1.5), FLOAT),
        (np.float64(1.5), FLOAT),
        (Decimal("1.5"), FLOAT),
        ("text", RAW_STR),
        (np.str_("text"), RAW_STR),
        (b"bytes", BYTES),
        (bytearray(b"bytes"), TENSOR),
        (memoryview(b"bytes"), TENSOR),
        (array("d", [1.0]), TENSOR),
        (np.zeros(()), TENSOR),
        (np.zeros((2, 3)), TENSOR),
        ((ctypes.c_int * 3)(), TENSOR),
        (OnlyDLPack(np.zeros(3)), TENSOR),
        (TensorBase(b"1234", (4,), (1, 8, 1)), TENSOR),
    ],
    ids=lambda value: type(value).__name__,
)
def test_argument_travels_as(probe: Probe, value: object, type_index: int) -> None:
    """Each Python type has its type index."""
    assert probe("type_index")(value) == type_index


@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 2**63 - 1, -(2**63), True, False, 0.1, float("inf"), "", "żółw 🐢", b"", b"a\0b",
     bytes(range(256))],
)  # fmt: skip
def test_argument_is_returned_unchanged(probe: Probe, value: object) -> None:
    """Values keep their type when they are passed and returned."""
    result = probe("echo")(value)
    assert result == value
    assert type(result) is type(value)


def test_numpy_scalars_keep_their_value(probe: Probe) -> None:
    """An integer scalar is an int, a float scalar a float, bool_ a bool."""
    echo = probe("echo")
    assert (echo(np.int16(-5)), echo(np.float32(0.5)), echo(np.bool_(True))) == (-5, 0.5, True)


def test_more_than_sixteen_arguments(probe: Probe) -> None:
    """Beyond the stack array the arguments go on the heap."""
    for count in (0, 1, 15, 16, 17, 1000):
        assert probe("sum")(*range(count)) == sum(range(count))
    assert probe("count")(*[b"bytes"] * 40) == 40


def test_keyword_argument_needs_metadata(probe: Probe) -> None:
    """A function without declared parameters has no names for them."""
    assert probe("add")(1, b=2) == 3
    with pytest.raises(TypeError, match=r"^count: expected positional arguments only, found 'b'$"):
        probe("count")(1, b=2)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_u64_is_passed_and_returned_unsigned(probe: Probe, value: int) -> None:
    """A function that declares uint64 accepts its upper half."""
    assert probe("echo_u64")(value) == value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("add", 2**63, r"add: argument 1 'a': out of range, expected an int64, found 9223.*; "
                       r"declared as int64_t add\("),
        ("add", -(2**63) - 1, "expected an int64"),
        ("echo", 2**63, "^echo: argument 1: out of range, expected an int64, found 9223[0-9]*$"),
        ("echo_u64", 2**64, r"echo_u64: argument 1 'value': out of range, expected a uint64"),
        ("echo_u64", -(2**63) - 1, "expected a uint64"),
    ],
)  # fmt: skip
def test_wide_int_is_refused(probe: Probe, name: str, value: int, expected: str) -> None:
    """No integer is cut to size."""
    with pytest.raises(OverflowError, match=expected):
        probe(name)(value, 1)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_str_that_c_cannot_hold_is_refused(probe: Probe, value: str) -> None:
    """An embedded NUL would cut the text, a lone surrogate has no UTF-8."""
    with pytest.raises(ValueError, match=r"^echo: argument 1: expected a str "):
        probe("echo")(value)


@pytest.mark.parametrize(
    "value", [object(), {}, [1], 1j, np.complex64(1), np.datetime64("2020-01-01"), ...]
)
def test_unsupported_type_names_function_argument_and_type(probe: Probe, value: object) -> None:
    """The message has the argument, the accepted types, the value found and the declaration."""
    expected = (
        r"^add: argument 2 'b': unsupported type, expected int, float, .*, "
        rf"found {type(value).__name__ if type(value).__module__ == 'builtins' else 'numpy'}"
        r".*; declared as int64_t add\(int64_t a, int64_t b\)$"
    )
    with pytest.raises(TypeError, match=expected):
        probe("add")(1, value)


def test_exception_of_an_argument_is_its_own(probe: Probe) -> None:
    """An error that __index__ or __dlpack__ raises arrives unchanged."""

    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

    class BrokenArray:
        def __dlpack__(self, **_: object) -> object:
            raise KeyError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        probe("echo")(Broken())
    with pytest.raises(KeyError, match="mine"):
        probe("echo")(BrokenArray())


def test_calls_leave_no_reference(probe: Probe, library: Library) -> None:
    """Arguments, the function, the owner and the library have the counts they had."""
    objects = [np.ones(4, "f4"), "text" * 9, b"bytes" * 9, 10**15, 0.25, bytearray(9), object()]
    owner = object()
    function = library.function("count", owner)
    assert function is not None
    watched = [*objects, owner, function, library]
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(50):
        function(*objects[:-1])
        function(*objects[:-1] * 4)
        with pytest.raises(TypeError):
            function(*objects)
    assert [sys.getrefcount(each) for each in watched] == before
