"""Wrappers: functions that C code calls during a call."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

from ...support.every_code import CodesLibrary, address, array, items_of, text_of
from ...support.wrapped_library import NONE, Any16, DLTensor, floating, integer, small, tensor

TRUE = Any16(2, 0, 1)
DOUBLES = (ctypes.c_double * 3)(1, 2, 3)
X = tensor((3,), (2, 64, 1), data=ctypes.addressof(DOUBLES))
KEPT = (
    "elsewhere: callback 'run' was kept, and called after the call of 'elsewhere' had ended, when"
    " it does nothing, expected calls during 'elsewhere' alone; let C call it before 'elsewhere'"
    " returns, or export with --callback elsewhere=kept; declared as"
    " void elsewhere(void *(*)(void *) run)"
)


def integral(codes: CodesLibrary, call: Any, low: float = 0, high: float = 2) -> Any16:
    """Call the C function with a callback that must not fail."""
    ends = floating(low), floating(high)
    return codes.call("integral", codes.function(call), address(7), *ends)


def test_a_callback_gets_and_returns_numbers(codes: CodesLibrary) -> None:
    """A Float and an opaque pointer; the result may be an int."""
    seen: list[tuple[int, float, int]] = []

    def square(x: Any16, data: Any16) -> Any16:
        seen.append((x.type_index, x.v_float64, data.v_int64))
        return integer(int(x.v_float64) ** 2)

    assert integral(codes, square).v_float64 == 4
    assert seen == [(3, 0, 7), (3, 2, 7)]


def test_a_callback_gets_every_kind_of_value(codes: CodesLibrary) -> None:
    """A borrowed tensor, text, an Array of text, a struct, a complex number, None, a large int."""
    seen: list[Any] = []

    def visit(rest: Any16, n: Any16, text: Any16, names: Any16, p: Any16, z: Any16, *more: Any16):
        made = DLTensor.from_address(rest.v_int64)
        values = (ctypes.c_double * made.shape[0]).from_address(made.data)
        numbers = [[x.v_float64 for x in items_of(v)] for v in (p, z)]
        dtype = (made.code, made.bits, made.lanes, made.device_type, made.ndim)
        texts = [text_of(text), *map(text_of, items_of(names))]
        seen.append((list(values), n.v_int64, dtype, texts, numbers, [bytes(m) for m in more]))
        return TRUE

    assert codes.call("each", X, integer(3), codes.function(visit)).v_int64 == 3
    rest = (2, 64, 1, 1, 1), ["text", "a", None, "long enough"], [[1, 2], [2, 1]]
    more = [bytes(16), bytes(integer(2**64 - 1))]
    assert seen == [
        ([1, 2, 3], 3, *rest, more),
        ([2, 3], 2, *rest, more),
        ([3], 1, *rest, more),
    ]


def test_none_is_null(codes: CodesLibrary) -> None:
    """A function that is optional; others are refused."""
    assert codes.call("each", X, integer(3), NONE).v_int64 == -1
    kind, message = codes.refusal("each", X, integer(3), integer(1))
    assert (kind, "'visit' (bool (*)(...)): expected a function or None" in message) == (
        "TypeError",
        True,
    )


def test_a_failing_callback_ends_the_call(codes: CodesLibrary) -> None:
    """Its error is that of the call; further callbacks of the call are not made."""
    calls: list[int] = []

    def fail(*values: Any16) -> None:
        calls.append(len(values))
        codes.raised.append(("KeyError", "mine"))

    before = codes.call("visited").v_int64
    assert codes.refusal("each", X, integer(3), codes.function(fail)) == ("KeyError", "mine")
    assert (calls, codes.call("visited").v_int64) == ([8], before + 3)


@pytest.mark.parametrize(
    ("result", "kind", "expected"),
    [
        (NONE, "TypeError", "integral: result of callback 'f' (double): expected a float, found N"),
        (small(b"a"), "TypeError", "(double): expected a float, found str; declared as"),
        (array(), "TypeError", "(double): expected a float, found an array"),
    ],
)
def test_the_result_of_a_callback_is_checked(
    codes: CodesLibrary, result: Any16, kind: str, expected: str
) -> None:
    """The message names the callback."""
    function = codes.function(lambda *values: result)
    ends = floating(0), floating(1)
    found, message = codes.refusal("integral", function, NONE, *ends)
    assert (found, expected in message) == (kind, True), message


def test_two_callbacks_share_the_failure(codes: CodesLibrary) -> None:
    """The second is not called; one that returns nothing drops its result."""
    calls: list[list[int]] = []
    keep = codes.function(lambda *values: calls.append([v.v_int64 for v in values]))
    fine = codes.function(lambda *values: calls.append([v.v_int64 for v in values]) or integer(3))
    codes.call("sorted", keep, fine)
    assert calls == [[], [1, -1]]
    fail = codes.function(lambda: codes.raised.append(("KeyError", "mine")))
    assert codes.refusal("sorted", fail, fine)[0] == "KeyError"
    assert len(calls) == 2
    wide = codes.function(lambda *values: integer(999))
    message = codes.refusal("sorted", keep, wide)[1]
    assert "sorted: result of callback 'compare' (int8_t): expected an int in" in message


def test_calls_may_be_nested(codes: CodesLibrary) -> None:
    """The inner call has its own callback; the outer one continues with its own."""

    def outer(x: Any16, data: Any16) -> Any16:
        inner = integral(codes, lambda y, _: floating(y.v_float64 * 10), 0, 1)
        return floating(inner.v_float64 + x.v_float64)

    assert integral(codes, outer).v_float64 == 12


def test_an_inner_failure_is_the_inner_calls(codes: CodesLibrary) -> None:
    """A callback may handle it."""

    def outer(x: Any16, data: Any16) -> Any16:
        fail = codes.function(lambda *values: codes.raised.append(("KeyError", "mine")))
        assert codes.run("integral", fail, NONE, floating(0), floating(1))[0] == -1
        codes.raised.clear()
        return floating(1)

    assert integral(codes, outer).v_float64 == 2


def test_another_thread_is_refused(codes: CodesLibrary) -> None:
    """The callback is not made, and the call fails."""
    calls: list[int] = []
    function = codes.function(lambda data: calls.append(1) or NONE)
    kind, message = codes.refusal("elsewhere", function)
    assert (kind, calls) == ("RuntimeError", [])
    assert message.startswith(
        "elsewhere: callback 'run' was called by another thread, expected the caller's; declared as"
    )
    assert codes.refusal("later") == ("RuntimeError", KEPT)
    assert calls == []
    codes.call("visited")


def test_a_callback_that_another_thread_keeps_is_refused_at_the_next_return(
    codes: CodesLibrary,
) -> None:
    """The function that returns next need not have a callback; the error comes once."""
    codes.refusal("elsewhere", codes.function(lambda data: NONE))
    later = threading.Thread(target=codes.dll.later)
    later.start()
    later.join()
    assert codes.refusal("visited") == ("RuntimeError", KEPT)
    codes.call("visited")


def test_a_status_of_a_callback(codes: CodesLibrary) -> None:
    """0 if it returned, -1 if it failed."""
    codes.call("asks", codes.function(lambda n: n))
    fail = codes.function(lambda n: codes.raised.append(("KeyError", str(n.v_int64))))
    assert codes.refusal("asks", fail) == ("KeyError", "4")


def test_the_status_of_a_loader_is_kept(codes: CodesLibrary) -> None:
    """tvm_ffi returns -2 for an exception that Python has stored."""
    function = codes.function(lambda *values: None, -2)
    code, _ = codes.run("integral", function, NONE, floating(0), floating(1))
    assert code == -2
