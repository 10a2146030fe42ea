"""Functions as arguments and results: Python callables, our Functions, closures of libraries."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from runtime._core import Function, Library
from runtime.modules.vm import load
from runtime.stream import Reader

from ..vm_assembler import Code, Program, call, func, packed, reg, ret

Probe = Callable[[str], Function]
SOURCE = "functions.c"

# TVMFFITypeIndex (formats: safe call).
NONE, INT, BOOL, FLOAT, OPAQUE, DTYPE, DEVICE = 0, 1, 2, 3, 4, 5, 6
SMALL_STR, SMALL_BYTES, STR, BYTES, FUNCTION, ARRAY = 11, 12, 65, 66, 68, 71
CPU, CUDA = 1, 2


def _echo(*values: Any) -> Any:
    return values[0] if values else None


class _Callable:
    """An object that can be called."""

    def __call__(self, value: int) -> int:
        return value + 1

    def method(self, value: int) -> int:
        return value + 1


# ---- what is called


@pytest.mark.parametrize(
    "function",
    [lambda n: n + 1, _Callable(), _Callable().method, (1).__add__,
     functools.partial(sum, start=1)],
    ids=["lambda", "object", "method", "builtin", "partial"],
)  # fmt: skip
def test_callables_are_functions(probe: Probe, function: Any) -> None:
    """Whatever Python can call travels as a Function object."""
    assert probe("type_index")(function) == FUNCTION
    if not isinstance(function, functools.partial):
        assert probe("apply")(function, 41) == 42


def test_class_is_a_callable_not_an_array(probe: Probe) -> None:
    """A class has the methods of its instances, but is none."""
    assert probe("apply")(int, "12") == 12
    assert probe("type_index")(np.ndarray) == FUNCTION


@pytest.mark.parametrize("count", [-1, -(2**31)])
@pytest.mark.parametrize("num_saved", [0, 1, 17])
def test_a_count_below_0_is_refused(probe: Probe, count: int, num_saved: int) -> None:
    """Native code that calls a callable, or a closure of bytecode, with no count of arguments."""
    with pytest.raises(TypeError, match=rf"_echo.*: expected arguments, found {count}"):
        probe("call_with_count")(_echo, count)
    code = [call(0, 1, func(2), *([reg(0)] * num_saved)), ret(0)]
    sub = Code("sub", ["a"] * max(num_saved - 1, 0), [ret(0)], max(num_saved, 1))
    program = Program([Code("main", ["x"], code, 1), packed("vm.builtin.make_closure"), sub])
    closure = load(Reader(program.payload()))["main"](1.5)
    with pytest.raises(TypeError, match=f"a closure: expected arguments, found {count}"):
        probe("call_with_count")(closure, count)


@pytest.mark.parametrize("apply", ["apply", "apply_keep"])
@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 2**63 - 1, True, 0.5, "", "seven77", "a text of many bytes, żółw", b"", b"a\0b",
     b"more than seven bytes"],
)  # fmt: skip
def test_value_there_and_back(probe: Probe, apply: str, value: object) -> None:
    """Arguments reach the callable, and its result comes back, type and all."""
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
    """What host code can pass, a callable can take."""
    seen: list[object] = []
    probe("call_with")(lambda given: seen.append(given), type_index)
    assert seen == [value]


@pytest.mark.parametrize("type_index", [OPAQUE, ARRAY])
def test_argument_without_python_form_is_refused(probe: Probe, type_index: int) -> None:
    """The message names the callable, the argument and the type index."""
    expected = r"^_echo: argument 1 (of type index 4 is not supported|is an object that is NULL)$"
    with pytest.raises((TypeError, ValueError), match=expected):
        probe("call_with")(_echo, type_index)


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


# ---- errors


def test_exception_arrives_as_itself(probe: Probe) -> None:
    """The very object, of any class, with the traceback of where it was raised."""

    class OwnError(Exception):
        pass

    error = OwnError("mine", 7)

    def fail() -> None:
        raise error

    for apply in ("apply", "apply_keep"):
        error.__traceback__ = None
        with pytest.raises(OwnError) as caught:
            probe(apply)(fail)
        assert caught.value is error
        assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "fail"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration])
def test_exceptions_that_end_things_pass(probe: Probe, error: type[BaseException]) -> None:
    """What C cannot raise by name, a callable can."""

    def fail() -> None:
        raise error("mine")

    with pytest.raises(error, match="mine"):
        probe("apply")(fail)


def test_exception_passes_through_nested_calls(probe: Probe) -> None:
    """Through two calls of ours it still is the same object."""
    apply, error = probe("apply"), ValueError("deep")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="deep") as caught:
        apply(lambda: apply(fail))
    assert caught.value is error


def test_swallowed_exception_is_forgotten(probe: Probe) -> None:
    """What host code ignored neither reappears nor stays alive."""

    class OwnError(Exception):
        pass

    def fail() -> None:
        raise OwnError

    gone: list[weakref.ref[OwnError]] = []

    def fail_and_watch() -> None:
        error = OwnError()
        gone.append(weakref.ref(error))
        raise error

    assert probe("swallow")(fail_and_watch) == -1
    gc.collect()
    assert gone[0]() is None
    assert probe("swallow")(fail) == -1
    with pytest.raises(TypeError, match="expected one number"):
        probe("make_adder")(1)()


def test_error_of_host_code_has_the_exception_as_context(probe: Probe) -> None:
    """Host code may raise another error instead; the first one still is told."""
    error = ValueError("first")

    def fail() -> None:
        raise error

    with pytest.raises(KeyError, match="translated") as caught:
        probe("translate")(fail)
    assert caught.value.__context__ is error
    assert caught.value.__cause__ is None


def test_exception_that_cannot_be_shown(probe: Probe) -> None:
    """An exception whose str raises is none the less itself."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def fail() -> None:
        raise MuteError

    with pytest.raises(MuteError):
        probe("apply")(fail)


# ---- Functions


def test_function_is_called_without_python(probe: Probe) -> None:
    """One of ours is passed as its own code; it is called as an export is, with handle NULL."""
    assert probe("apply")(probe("handle_is_null")) == 1
    assert probe("apply")(probe("apply"), probe("handle_is_null")) == 1
    with pytest.raises(LookupError, match="with the GIL"):
        probe("apply")(probe("fails_keep"))


def test_callable_comes_back_as_itself(probe: Probe) -> None:
    """A function that Python made is never wrapped twice."""
    apply = probe("apply")
    assert probe("apply")(_echo, len) is len
    assert probe("apply")(_echo, apply) is apply


def test_function_result_is_callable(probe: Probe) -> None:
    """A closure of the library becomes a Function, and goes when that goes."""
    add = probe("make_adder")(40)
    assert isinstance(add, Function)
    assert (add(2), probe("apply")(add, 3), probe("live_objects")()) == (42, 43, 1)
    assert (add.name, add.signature, repr(add)) == ("make_adder()", None, "<Function make_adder()>")
    assert (probe("apply")(_echo, add) is add, probe("apply")(_echo, add)(4)) == (False, 44)
    with pytest.raises(TypeError, match="expected one number"):
        add(1, 2)
    with pytest.raises(TypeError, match=r"^make_adder\(\): argument 1: unsupported type"):
        add(object())
    del add
    assert probe("live_objects")() == 0


def test_function_argument_can_be_kept(probe: Probe) -> None:
    """What a callback is given it may keep beyond the call."""
    given: list[Any] = []
    probe("apply")(given.append, probe("make_adder")(1))
    assert given[0].name == "argument 1 of append"
    assert (given[0](2), probe("live_objects")()) == (3, 1)
    given.clear()
    assert probe("live_objects")() == 0


def test_function_result_keeps_its_library(compile_library: Callable[..., Path]) -> None:
    """Neither the maker nor the library is needed any longer to call what was made."""
    source = Path(__file__).with_name("functions.c").read_text() + "/* on its own */"
    library = Library(str(compile_library(source)))
    owner = _Callable()
    make = library.function("make_adder", owner)
    assert make is not None
    add = make(40)
    assert add.owner is owner
    del library, make
    gc.collect()
    assert add(2) == 42


def test_kept_callable_lives_as_long_as_it_is_kept(probe: Probe) -> None:
    """Host code that takes a reference may call later; with its release the callable goes."""

    def function(value: int) -> int:
        return value * 2

    gone = weakref.ref(function)
    probe("keep")(function)
    del function
    assert probe("call_kept")(21) == 42
    probe("drop_kept")()
    assert gone() is None


def test_kept_callable_and_the_next_one_are_apart(probe: Probe) -> None:
    """What host code keeps is not used again for the callable of the next call."""
    probe("keep")(lambda value: f"kept {value}")
    assert probe("apply")(lambda value: f"next {value}", 1) == "next 1"
    assert probe("call_kept")(2) == "kept 2"
    probe("drop_kept")()
    assert probe("apply")(lambda value: f"last {value}", 3) == "last 3"


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
        apply(_echo, apply)
        with pytest.raises(ValueError, match="same"):
            apply(fail, text)
        error.__traceback__ = error.__context__ = None
    assert [sys.getrefcount(each) for each in watched] == before


# ---- tensors that are lent


def test_lent_array_is_the_callers(probe: Probe) -> None:
    """A callback sees and fills the array itself."""
    array = np.zeros((4, 6), "f4")

    def fill(tensor: runtime.Tensor) -> None:
        assert (tensor.shape, tensor.dtype, tensor.device) == (
            (2, 3),
            "float32",
            runtime.Device("cpu"),
        )
        tensor.numpy()[:] = [[1, 2, 3], [4, 5, 6]]

    probe("apply")(fill, array[::2, ::2])
    assert array[::2, ::2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert array.sum() == 21


def test_lent_tensor_with_strides_and_offset(probe: Probe) -> None:
    """Shape, strides and offset are as host code says."""
    seen: list[object] = []

    def look(tensor: runtime.Tensor) -> None:
        view = tensor.numpy()
        seen.append(view.tolist())
        view[0, 0] = 70

    assert probe("lend")(look, CPU) == 70
    assert seen == [[[1, 3, 5], [7, 9, 11]]]


def test_lent_tensor_ends_with_the_call(probe: Probe) -> None:
    """Kept beyond the call, it says so instead of showing memory that is gone."""
    kept: list[runtime.Tensor] = []
    probe("lend")(kept.append, CPU)
    (tensor,) = kept
    for use in (tensor.numpy, tensor.__dlpack__, lambda: tensor.raw, lambda: memoryview(tensor)):
        with pytest.raises(ValueError, match="^the tensor was lent for a call that is over; copy"):
            use()
    with pytest.raises(ValueError, match="expected a complete tensor") as caught:
        probe("type_index")(tensor)
    assert "lent for a call that is over" in str(caught.value.__cause__)


@pytest.mark.parametrize("view", [np.asarray, np.from_dlpack, memoryview])
def test_view_that_outlives_the_call_is_an_error(probe: Probe, view: Any) -> None:
    """Nothing can be done for the view, so the call that made it fails."""
    kept: list[Any] = []
    with pytest.raises(BufferError, match="argument 1: a view of it outlives the call"):
        probe("lend")(lambda tensor: kept.append(view(tensor)), CPU)
    kept.clear()


def test_lent_device_tensor_is_not_read(probe: Probe) -> None:
    """What lies on a device can be passed on, not viewed."""

    def look(tensor: runtime.Tensor) -> None:
        assert (tensor.device, tensor.__dlpack_device__()) == (runtime.Device("cuda"), (CUDA, 0))
        assert repr(tensor) == "<Tensor float32[2, 3] on cuda:0>"
        with pytest.raises(BufferError, match="^the tensor lies in a device's memory$"):
            memoryview(tensor)

    probe("lend")(look, CUDA)


# ---- threads


def test_callback_from_a_native_thread(probe: Probe) -> None:
    """A thread that Python does not know takes the GIL for each call."""
    threads: set[int] = set()

    def square(number: int) -> int:
        threads.add(threading.get_ident())
        return number * number

    assert probe("apply_in_thread")(square, 100) == sum(n * n for n in range(100))
    assert threading.get_ident() not in threads


def test_exception_in_a_native_thread(probe: Probe) -> None:
    """It ends there; what host code makes of it is what arrives."""

    def fail(_: int) -> int:
        raise KeyError("there")

    with pytest.raises(RuntimeError, match="^failed$") as caught:
        probe("apply_in_thread")(fail, 1)
    assert caught.value.__context__ is None


def test_native_threads_beside_python_threads(probe: Probe) -> None:
    """Callbacks of several native threads and Python's own run side by side."""
    sums: list[int] = []

    def run() -> None:
        sums.extend(probe("apply_in_thread")(lambda n: n, 200) for _ in range(5))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(200))] * 20


def test_two_calls_run_at_once(probe: Probe) -> None:
    """Threads scale: each waits inside its call until the other is inside, too."""
    met: list[object] = []
    threads = [threading.Thread(target=lambda: met.append(probe("meet")(2, 30))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [True, True]


EXIT = """
import os, sys
from runtime._core import Library
library = Library(sys.argv[1])
keep, call_kept = library.function("keep", None), library.function("call_kept", None)
keep(lambda: print("called"))
call_kept()

class Late:
    def __del__(self, call_kept=call_kept, write=os.write):
        try:
            call_kept()
        except RuntimeError as error:
            write(2, str(error).encode())

sys.late = Late()
"""


def test_callback_at_interpreter_exit(library: Library) -> None:
    """A callable that host code still keeps is not called while the interpreter ends."""
    ran = subprocess.run(
        [sys.executable, "-c", EXIT, library.path],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "called\n")
    assert ran.stderr == "the Python interpreter is shutting down"
