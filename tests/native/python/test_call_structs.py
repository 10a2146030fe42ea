"""Structs, complex numbers, several results and bytes as arguments and results."""

from __future__ import annotations

import gc
import shutil
from array import array
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime

from ...support.paths import C_SOURCES
from .dlpack_producers import Probe

SOURCE = "declared.c"
POINT = np.dtype([("x", "f8"), ("n", "i4")], align=True)
Point = namedtuple("Point", "x n")


def points() -> np.ndarray:
    """Two points."""
    made = np.zeros(2, POINT)
    made["x"], made["n"] = [1, 2], [3, 4]
    return made


# ---- By value


@pytest.mark.parametrize(
    "value",
    [{"x": 2.0, "n": 4}, (2.0, 4), [2.0, 4], Point(2.0, 4), points()[1], points()[1:]],
    ids=["dict", "tuple", "list", "namedtuple", "void", "array"],
)
def test_struct_by_value(probe: Probe, value: object) -> None:
    """The result is a named tuple, with named tuples in it."""
    line = probe("line_of")(value)
    assert line == ((2.0, 4), (4.0, 8), (1, 2, 3, 4))
    assert (line.from_.x, line.to.n, line.tags) == (2.0, 8, (1, 2, 3, 4))
    assert type(line) is type(line_again := probe("line_of")(line.to)) and line_again.to.x == 8.0


def test_omitted_field_is_zero(probe: Probe) -> None:
    """As in C's initialisers."""
    assert probe("line_of")({"n": 4}).to == (0.0, 8)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"z": 1}, "expected a field of struct 'point', found 'z'; it has: 'n', 'x'; declared as"),
        ((1.0,), r"expected a mapping or a tuple of 2 fields \(x, n\), found \(1.0,\)"),
        (np.zeros((), [("x", "f4"), ("n", "i4")])[()], "expected the layout of struct 'point'"),
        (3, "expected an array"),
    ],
)
def test_other_value_is_refused(probe: Probe, value: object, expected: str) -> None:
    """The message shows the fields."""
    with pytest.raises(TypeError, match=f"line_of: .*{expected}"):
        probe("line_of")(value)


# ---- By pointer


@pytest.mark.parametrize(
    "value",
    [
        {"x": 1.0, "n": 3},
        (1.0, 3),
        points(),
        points()[0],
        points().tobytes(),
        bytearray(points().tobytes()),
        points().view("u1"),
        memoryview(points().tobytes()),
    ],
    ids=["dict", "tuple", "array", "void", "bytes", "bytearray", "uint8", "memoryview"],
)
def test_const_pointer_takes(probe: Probe, value: object) -> None:
    """All that has the fields or the bytes."""
    assert probe("total")(value) == 4.0


def test_handle_is_a_pointer_to_a_struct(probe: Probe) -> None:
    """A pointer that C returned is passed as it is."""
    assert isinstance(probe("total")(probe("any_pointer")()), float)


def test_function_writes_to_an_array(probe: Probe) -> None:
    """Its memory is passed; a scalar and a mapping are updated after the call."""
    array_of = points()
    probe("grow")(array_of)
    assert array_of["x"].tolist() == [2.0, 2.0]
    probe("grow")(array_of[1])
    assert array_of["x"].tolist() == [2.0, 3.0]
    given: dict[str, Any] = {"x": 1.0}
    probe("grow")(given)
    assert given == {"x": 2.0, "n": 0}
    data = bytearray(16)
    probe("grow")(data)
    assert np.frombuffer(data, POINT)["x"] == 1.0


def test_mapping_is_updated_beside_an_array_of_many_dimensions(probe: Probe) -> None:
    """Both need work after the call."""
    given: dict[str, Any] = {"x": 1.0}
    with pytest.raises(TypeError, match="argument 2"):
        probe("grow")(given, object())
    assert given == {"x": 1.0}
    probe("grow")(given, np.zeros((1,) * 9))
    assert given == {"x": 2.0, "n": 0}


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (
            b"x" * 16,
            TypeError,
            "expected a writable buffer, found bytes, which is constant; pass",
        ),
        ("text", TypeError, "expected a writable buffer, found a str, which is constant"),
        ((1.0, 2), TypeError, "expected a dict or an array, whose fields are updated, found"),
        (np.zeros(4, POINT)[::2], ValueError, "expected a contiguous array"),
        (
            np.zeros(1, [("x", "f8"), ("n", "i4")]),
            TypeError,
            r"expected the layout of struct 'point' \(x: f64 at 0, n: i32 at 8; 16 bytes\), found "
            r"a dtype with \(x: float64 at 0, n: int32 at 8; 12 bytes\); make it with numpy.dtype",
        ),
        ({"y": 1}, TypeError, "expected a field of struct 'point', found 'y'; it has: 'n', 'x'"),
        ({"x": "a"}, TypeError, "field 'x': expected a value of type f64, found 'a'"),
        ({"n": 2**31}, OverflowError, "field 'n': expected a value of type i32, found 2147483648"),
    ],
)
def test_pointer_refuses(
    probe: Probe, value: object, error: type[Exception], expected: str
) -> None:
    """The messages name the function and the argument."""
    with pytest.raises(error, match=f"^grow: argument 1 'p': {expected}"):
        probe("grow")(value)


def test_readonly_array_is_not_written(probe: Probe) -> None:
    """Neither an array nor a scalar of one."""
    frozen = points()
    frozen.flags.writeable = False
    for value in (frozen, frozen[0]):
        with pytest.raises(ValueError, match="expected a writable array, found a read-only one"):
            probe("grow")(value)
    assert probe("total")(frozen) == 4.0


def test_result_with_a_struct_keeps_no_library_open(compile_library, tmp_path: Path) -> None:
    """The classes of its named tuples are kept by the library, and do not keep it."""
    copy = shutil.copy(compile_library((C_SOURCES / SOURCE).read_text()), tmp_path / "copy.so")
    assert runtime.load(copy)["line_of"]((2.0, 4)).to == (4.0, 8)
    gc.collect()
    assert copy.name not in Path("/proc/self/maps").read_text()


# ---- Complex numbers, several results


@pytest.mark.parametrize(
    "value",
    [1 + 2j, np.complex64(1 + 2j), np.complex128(1 + 2j), (1.0, 2.0), [1.0, 2.0]],
    ids=lambda value: type(value).__name__,
)
def test_complex_number(probe: Probe, value: object) -> None:
    """It is an array of two numbers for the C code."""
    assert probe("square")(value) == -3 + 4j


def test_several_results_are_a_tuple(probe: Probe) -> None:
    """The result of the function is first; a handle in it is released as another."""
    before = probe("num_open")()
    result, mean, counter = probe("open_both")(1)
    assert (result, mean, counter.kind) == (7, 2.5, "counter")
    del counter
    assert probe("num_open")() == before
    assert probe("open_both")(0) == (7, 2.5, None)
    assert probe("texts")() == ("short", "a longer text")


def test_array_function_makes_an_array() -> None:
    """The global function is the core's; its items own their data."""
    make = runtime.get_global_func("ffi.Array")
    assert make() == ()
    assert make(1, 2.5, None, True, "text", b"bytes of more") == (
        *(1, 2.5, None, True),
        *("text", b"bytes of more"),
    )
    assert make(make(1), (2, "three")) == ((1,), (2, "three"))
    with pytest.raises(TypeError, match="argument 1: expected a value that owns its data"):
        make(np.zeros(3))


def test_registered_array_function_is_preferred(probe: Probe, register_func) -> None:
    """A program may replace it, as any global function."""
    core = runtime.get_global_func("ffi.Array")
    try:
        runtime.register_func("ffi.Array", override=True)(lambda *items: ("mine",))
        assert probe("texts")() == ("mine",)
    finally:
        runtime.register_func("ffi.Array", override=True)(core)
    assert probe("texts")() == ("short", "a longer text")


def test_complex_array_of_one_element(probe: Probe) -> None:
    """An array is passed as such, which the function refuses here."""
    for value in (np.array([1 + 2j]), np.array(1 + 2j)):
        with pytest.raises(TypeError, match="square: expected an array"):
            probe("square")(value)


# ---- Text and bytes


@pytest.mark.parametrize("value", [["a", "bb"], ("a", "bb")], ids=["list", "tuple"])
def test_strings(probe: Probe, value: object) -> None:
    """A list of str is an array of Str."""
    assert probe("count_texts")(value, 2) == 2


@pytest.mark.parametrize(
    "buffer", [bytearray(4), np.zeros(4, "i1"), np.zeros(1, "S4"), array("b", [0] * 4)]
)
def test_writable_buffer_of_bytes(probe: Probe, buffer: Any) -> None:
    """`char *` fills any writable buffer of 8-bit elements."""
    probe("fill")(buffer, 4)
    assert (
        bytes(memoryview(buffer).cast("B") if isinstance(buffer, bytearray) else buffer) == b"aaaa"
    )


@pytest.mark.parametrize("value", [b"1234", "1234", np.bytes_(b"1234")])
def test_constant_is_not_a_buffer(probe: Probe, value: object) -> None:
    """The message says what to pass."""
    with pytest.raises(TypeError, match="fill: argument 1 'buf': .*constant; pass a bytearray or"):
        probe("fill")(value, 4)


@pytest.mark.parametrize(
    ("value", "nbytes"),
    [
        (b"abc", 3),
        (bytearray(5), 5),
        (points(), 32),
        (np.zeros(2, "S3"), 6),
        (memoryview(b"ab"), 2),
    ],
)
def test_void_pointer_takes_any_buffer(probe: Probe, value: object, nbytes: int) -> None:
    """Structured arrays and text too."""
    assert probe("nbytes")(value) == nbytes


def test_void_pointer_refuses_strides(probe: Probe) -> None:
    """The elements between are not the caller's."""
    with pytest.raises(ValueError, match="expected a contiguous array, found one with strides"):
        probe("nbytes")(points()[::-1])
