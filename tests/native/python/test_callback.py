"""Python callables as arguments: values there and back."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import pytest

import runtime
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.vm_assembler import Code, Program, call, func, packed, reg, ret
from .callables import CallableObject, Probe, echo

SOURCE = "functions.c"
# TVMFFITypeIndex (formats: safe call).
NONE, INT, BOOL, FLOAT, OPAQUE, DTYPE, DEVICE = 0, 1, 2, 3, 4, 5, 6
SMALL_STR, SMALL_BYTES, STR, BYTES, FUNCTION, ARRAY = 11, 12, 65, 66, 68, 71


@pytest.mark.parametrize(
    "function",
    [lambda n: n + 1, CallableObject(), CallableObject().method, (1).__add__,
     functools.partial(sum, start=1)],
    ids=["lambda", "object", "method", "builtin", "partial"],
)  # fmt: skip
def test_callables_are_functions(probe: Probe, function: Any) -> None:
    """Any Python callable is passed as a Function object."""
    assert probe("type_index")(function) == FUNCTION
    if not isinstance(function, functools.partial):
        assert probe("apply")(function, 41) == 42


def test_class_is_a_callable_not_an_array(probe: Probe) -> None:
    """A class has the methods of its instances, but is not one."""
    assert probe("apply")(int, "12") == 12
    assert probe("type_index")(np.ndarray) == FUNCTION


@pytest.mark.parametrize("count", [-1, -(2**31)])
@pytest.mark.parametrize("num_saved", [0, 1, 17])
def test_a_count_below_0_is_refused(probe: Probe, count: int, num_saved: int) -> None:
    """Native code that calls a callable, or a closure of bytecode, with no count of arguments."""
    with pytest.raises(
        TypeError, match=rf"echo.*: number of arguments, expected at least 0, found {count}"
    ):
        probe("call_with_count")(echo, count)
    code = [call(0, 1, func(2), *([reg(0)] * num_saved)), ret(0)]
    sub = Code("sub", ["a"] * max(num_saved - 1, 0), [ret(0)], max(num_saved, 1))
    program = Program([Code("main", ["x"], code, 1), packed("vm.builtin.make_closure"), sub])
    closure = load(Reader(program.payload()))["main"](1.5)
    with pytest.raises(TypeError, match=f"closure: expected at least 0 arguments, found {count}"):
        probe("call_with_count")(closure, count)


@pytest.mark.parametrize("apply", ["apply", "apply_keep"])
@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 2**63 - 1, True, 0.5, "", "seven77", "a text of many bytes, żółw", b"", b"a\0b",
     b"more than seven bytes"],
)  # fmt: skip
def test_value_there_and_back(probe: Probe, apply: str, value: object) -> None:
    """Arguments reach the callable, and its result returns with its type."""
    seen: list[object] = []
    result = probe(apply)(lambda given: seen.append(given) or given, value)
    assert (seen, result) == ([value], value)
    assert type(seen[0]) is type(result) is type(value)


@pytest.mark.parametrize(
    ("value", "type_index"),
    [(None, NONE), (7, INT), (np.int32(7), INT), (True, BOOL), (1.5, FLOAT), ("seven77", SMALL_STR),
     ("eight888", STR), (b"seven77", SMALL_BYTES), (b"eight888", BYTES), (len, FUNCTION)],
)  # fmt: skip
def test_result_travels_as(probe: Probe, value: object, type_index: int) -> None:
    """A callable's result is a value that the caller owns, never a borrowed one."""
    assert probe("result_type")(lambda: value) == type_index


@pytest.mark.parametrize(
    ("type_index", "value"),
    [(NONE, None), (INT, 2**64 - 1), (STR, "a text of many bytes"),
     (BYTES, b"a text of many bytes"),
     (SMALL_STR, "abc"), (SMALL_BYTES, b"abc"), (DTYPE, "float32x4"),
     (DEVICE, runtime.Device("cuda:1"))],
)  # fmt: skip
def test_argument_of_every_kind(probe: Probe, type_index: int, value: object) -> None:
    """A callable accepts every value that host code can pass."""
    seen: list[object] = []
    probe("call_with")(lambda given: seen.append(given), type_index)
    assert seen == [value]


def test_argument_without_object_is_refused(probe: Probe) -> None:
    """The message names the callable and the argument."""
    with pytest.raises(ValueError, match=r"^echo: argument 1: expected an object, found NULL$"):
        probe("call_with")(echo, ARRAY)


def test_null_pointer_argument_is_none(probe: Probe) -> None:
    """An opaque pointer that is NULL becomes None."""
    seen: list[object] = []
    probe("call_with")(lambda given: seen.append(given), OPAQUE)
    assert seen == [None]


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (object(), TypeError, "result: unsupported type, expected int, float, .*, found object"),
        (2**63, OverflowError, "result: out of range, expected an int64, found 92233720368"),
        ("a\0b", ValueError, r"result: expected a str without NUL, found 'a\\x00b'"),
    ],
)  # fmt: skip
def test_result_without_native_form_is_refused(
    probe: Probe, value: object, error: type[Exception], expected: str
) -> None:
    """The message names the callable."""

    def give() -> object:
        return value

    with pytest.raises(error, match=f"^give: {expected}"):
        probe("apply")(give)
    assert probe("swallow")(give) == -1


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_any_number_of_arguments(probe: Probe, count: int) -> None:
    """Beyond the stack array the arguments go on the heap."""
    assert probe("apply")(lambda *values: len(values), *range(count)) == count


def test_nested_callbacks(probe: Probe) -> None:
    """A callable may call again, to any depth."""
    apply = probe("apply")

    def count_down(number: int) -> int:
        return 0 if number == 0 else 1 + apply(count_down, number - 1)

    assert apply(count_down, 20) == 20


def test_callbacks_leave_no_reference(probe: Probe) -> None:
    """The callable, its arguments and results have the counts they had."""
    text, error = "a text of many bytes", ValueError("same")

    def fail(_: object) -> None:
        raise error

    def give(_: object) -> str:
        return text

    watched = [fail, give, text, error, probe("apply")]
    apply = probe("apply")
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(50):
        apply(give, text)
        apply(echo, apply)
        with pytest.raises(ValueError, match="same"):
            apply(fail, text)
        error.__traceback__ = error.__context__ = None
    assert [sys.getrefcount(each) for each in watched] == before
