"""Wrappers: wrong arguments, and the messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.wrapped_library import (
    BOOL_DTYPE,
    NONE,
    RAW,
    Any16,
    Library,
    build,
    floating,
    heap,
    integer,
    small,
    tensor,
)

CPU_FLOAT = "expected a contiguous CPU tensor of float32"
DECLARED = "; declared as uintptr_t in_float(const float *x)"


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        ("same_int", floating(1), "TypeError", "(int): expected an int, found float; declared as"),
        ("same_int", NONE, "TypeError", "expected an int, found None"),
        ("same_size_t", floating(1), "TypeError", "expected an int, found float"),
        ("same_int64_t", integer(2**64 - 1), "OverflowError", "found 18446744073709551615"),
        ("flip", integer(2), "OverflowError", "expected a bool in 0 .. 1, found 2"),
        ("flip", integer(-1), "OverflowError", "expected a bool in 0 .. 1, found -1"),
        ("flip", floating(1), "TypeError", "expected a bool, found float"),
        ("half", RAW, "TypeError", "half: argument 1 'x' (float): expected a float, found str"),
        ("half", NONE, "TypeError", "expected a float, found None"),
        ("twice", tensor(), "TypeError", "expected a float, found float32[3] on cpu"),
        ("ndim", NONE, "TypeError", "(DLTensor *): expected a tensor, found None"),
        ("ndim", integer(1), "TypeError", "expected a tensor, found int"),
        ("length", Any16(4), "TypeError", "expected a str, found an opaque pointer"),
        ("length", Any16(5), "TypeError", "expected a str, found a dtype"),
        ("length", Any16(6), "TypeError", "expected a str, found a device"),
        ("length", Any16(8), "TypeError", "expected a str, found str"),
        ("length", Any16(9), "TypeError", "expected a str, found bytes"),
        ("length", Any16(12, 8), "TypeError", "expected a str, found bytes"),
        ("length", Any16(66), "TypeError", "expected a str, found bytes"),
        ("length", Any16(67), "TypeError", "expected a str, found an error"),
        ("length", Any16(68), "TypeError", "expected a str, found a function"),
        ("length", Any16(69), "TypeError", "expected a str, found a shape"),
        ("length", Any16(73), "TypeError", "expected a str, found a module"),
        ("length", Any16(71), "TypeError", "expected a str, found an array"),
        ("length", Any16(72), "TypeError", "expected a str, found a value of type index 72"),
        ("length", small(b"12345678", 8), "TypeError", "expected a str, found str"),
        ("length", small(b"a\0b"), "ValueError", "text without NUL, found one at byte 1"),
        ("length", small(b"abc", 2), "ValueError", "text that ends in NUL, found byte 0x63"),
        ("length", heap(b"long\0text"), "ValueError", "text without NUL, found one at byte 4"),
        ("length", heap(b"long text", 4), "ValueError", "text that ends in NUL, found byte 0x20"),
        ("in_float", integer(1), "TypeError", f"{CPU_FLOAT} or None, found int{DECLARED}"),
        ("in_float", tensor(dtype=(0, 64, 1)), "TypeError", "float32, found int64[3] on cpu;"),
        ("in_float", tensor(dtype=(2, 32, 4)), "TypeError", "found float32x4[3] on cpu;"),
        ("in_float", tensor(dtype=(99, 32, 1)), "TypeError", "found custom[99]32[3] on cpu;"),
        ("in_float", tensor(dtype=BOOL_DTYPE), "TypeError", "found bool[3] on cpu;"),
        ("in_float", tensor(dtype=(1, 1, 1)), "TypeError", "found bool[3] on cpu;"),
        ("in_float", tensor(dtype=(5, 64, 1)), "TypeError", "found complex64[3] on cpu;"),
        ("in_float", tensor(dtype=(3, 64, 1)), "TypeError", "found handle64[3] on cpu;"),
        ("in_float", tensor(device=(2, 0)), "ValueError", "found float32[3] on cuda:0;"),
        ("in_float", tensor(device=(4, 1)), "ValueError", "found float32[3] on opencl:1;"),
        ("in_float", tensor(device=(16, 0)), "ValueError", "found float32[3] on hexagon:0;"),
        ("in_float", tensor(device=(5, 2)), "ValueError", "found float32[3] on device[5]:2;"),
        ("in_float", tensor(device=(-1, 0)), "ValueError", "found float32[3] on device[-1]:0;"),
        ("in_float", tensor(strides=(2,)), "ValueError", "on cpu with strides [2];"),
        (
            "in_float",
            tensor((2, 3), strides=(1, 2)),
            "ValueError",
            "[2, 3] on cpu with strides [1, 2]",
        ),
        ("in_float", tensor((3,), strides=(0,)), "ValueError", "with strides [0]"),
        ("in_float", tensor((2**62, 8), strides=(9, 1)), "ValueError", "with strides [9, 1]"),
        ("in_float", tensor(offset=2), "ValueError", "aligned to 4 bytes, found address 0x1002 of"),
        (
            "in_float",
            tensor(data=None),
            "ValueError",
            "expected data, found NULL in float32[3]",
        ),
        ("at_double", tensor(dtype=(2, 64, 1), offset=4), "ValueError", "aligned to 8 bytes"),
    ],
)
def test_a_wrong_argument_is_refused(
    library: Library, name: str, value: Any16, kind: str, message: str
) -> None:
    """The message names function, argument, type, the expected value and the value found."""
    found = library.refusal(name, value)
    assert found[0] == kind
    assert message in found[1]
    assert found[1].startswith(f"{name}: argument 1 '")


def test_the_whole_message(library: Library) -> None:
    """One refusal in full, of an argument that is not the first."""
    assert library.refusal("index", tensor(), floating(1)) == (
        "TypeError",
        "index: argument 2 'n' (int64_t): expected an int, found float;"
        " declared as int64_t index(const float *x, int64_t n)",
    )


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("index", 1, "index: expected 2 arguments, found 1; declared as int64_t index("),
        ("index", 3, "index: expected 2 arguments, found 3"),
        ("half", 0, "half: expected 1 argument, found 0"),
        ("touch", 1, "touch: expected 0 arguments, found 1; declared as void touch()"),
    ],
)
def test_a_wrong_number_of_arguments_is_refused(
    library: Library, name: str, count: int, message: str
) -> None:
    """The count is checked before any argument."""
    kind, found = library.refusal(name, *[NONE] * count)
    assert kind == "TypeError"
    assert found.startswith(message)


def test_a_message_too_long_is_cut(tmp_path: Path) -> None:
    """A thousand parameters do not overrun the message."""
    types = ", ".join(["int64_t"] * 1000)
    made = build(
        tmp_path, f"#include <stdint.h>\nvoid f({types}) {{}}", {"f": f"void({types})"}, "-w"
    )
    kind, message = Library(made).refusal("f", *[NONE] * 1000)
    assert (kind, len(message)) == ("TypeError", 2047)
    assert message.startswith("f: argument 1 'arg0' (int64_t): expected an int, found None")
