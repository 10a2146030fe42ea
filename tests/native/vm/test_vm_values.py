"""The virtual machine: arguments, results, tuples and constants."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime
from runtime import _core
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.vm_assembler import *
from ...support.vm_programs import identity, make, one_call


def test_memory_that_the_machine_lacks_is_an_error_of_ours() -> None:
    """Whichever allocation of a run fails: it is OutOfMemoryError, or Python's own."""
    code = [call(1, 1, reg(CONTEXT), imm(2)), ret(0)]
    make_one = make(Program([Code("main", ["x"], code, 2), packed("vm.builtin.alloc_shape_heap")]))
    main, found = make_one["main"], set()
    for n in range(1, 100):
        _core.fail_allocation(n)
        try:
            main(1)
        except MemoryError as error:
            found.add(type(error))
        if _core.fail_allocation(0) > 0:
            break
    assert found == {runtime.OutOfMemoryError}
    assert n < 99
    assert main(1) == 1


@pytest.mark.parametrize("value", [None, 3, -(2**63), True, 0.5, "short", "longer than 7", b"by"])
def test_plain_values_pass_through(value: object) -> None:
    """Numbers, strings and None are returned unchanged."""
    result = identity()(value)
    assert result == value and type(result) is type(value)


def test_a_returned_argument_is_a_copy() -> None:
    """The result of a model is never the caller's array."""
    array = np.arange(4, dtype="float32")
    result = identity()(array)
    array[0] = 9
    assert result.numpy().tolist() == [0, 1, 2, 3]


def test_a_machine_made_tensor_passes_without_a_copy() -> None:
    """A result that is passed again is the same memory, which its object keeps."""
    first = identity()(np.arange(4, dtype="float32"))
    second = identity()(first)
    assert first.numpy().ctypes.data == second.numpy().ctypes.data
    del first
    assert second.numpy().tolist() == [0, 1, 2, 3]


def test_tuples_are_passed_and_returned() -> None:
    """Tuples and lists become tuples, nested ones too; tensors in them are kept."""
    array = np.arange(3, dtype="int64")
    number, (text, tensor), empty = identity()((1, ["x" * 20, array], ()))
    assert (number, text, empty) == (1, "x" * 20, ())
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_a_tuple_with_unsupported_values_is_refused() -> None:
    """The error names the item, and its cause has the reason."""
    with pytest.raises(TypeError, match=r"main: argument 1: item 1 of a tuple cannot be") as caught:
        identity()((1, object()))
    assert "unsupported type" in str(caught.value.__cause__)


def test_a_tuple_in_itself_is_refused() -> None:
    """Tuples without an end are a RecursionError."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises((RecursionError, TypeError)):
        identity()(endless)


@pytest.mark.parametrize("depth", [64, 200])
def test_tuples_in_tuples_have_a_limit(depth: int) -> None:
    """An argument may be nested 64 deep."""
    nested: Any = 1
    for _ in range(depth):
        nested = (nested,)
    if depth == 64:
        assert identity()(nested) == nested
    else:
        with pytest.raises(ValueError, match="tuples are nested too deeply, expected at most 64"):
            identity()(nested)


@pytest.mark.parametrize(
    "make_array",
    [
        lambda: np.arange(24, dtype="float32").reshape(4, 6)[:, ::2],
        lambda: np.arange(24, dtype="float32").reshape(4, 6).T,
        lambda: np.frombuffer(bytearray(4 + 48), "float32", 12, 4),
    ],
    ids=["strided", "transposed", "unaligned"],
)
def test_operators_get_compact_aligned_tensors(make_array: Callable[[], Any]) -> None:
    """Compiled code is made for 64-byte alignment: other arrays are copied for the call."""
    array, seen = make_array(), []

    def operator(tensor: Any) -> None:
        view = tensor.numpy()
        seen.append((view.ctypes.data % 64, view.flags.c_contiguous, view.tolist()))

    one_call("operator", 1, reg(0), operator=operator)(array)
    assert seen == [(0, True, array.tolist())]


def test_an_aligned_array_is_passed_as_it_is() -> None:
    """No copy is made if none is needed."""
    tensor, seen = runtime.empty((4,)), []
    one_call("operator", 1, reg(0), operator=lambda t: seen.append(t.numpy().ctypes.data))(tensor)
    assert seen == [tensor.numpy().ctypes.data]


def test_arrays_are_released_after_the_call() -> None:
    """Nothing keeps an argument, in a tuple or alone."""
    array = np.zeros(4, "float32")
    gone = weakref.ref(array)
    one_call("operator", 1, reg(0), operator=lambda t: None)((array,))
    identity()(array)
    del array
    assert gone() is None


@pytest.mark.parametrize("count", [0, 2])
def test_the_number_of_arguments_is_checked(count: int) -> None:
    """A call with too few or too many says the expected number."""
    with pytest.raises(TypeError, match=f"main: expected 1 arguments, found {count}"):
        identity()(*range(count))


def test_constants_are_those_of_the_payload() -> None:
    """Each kind of constant arrives at a function as its value."""
    array = np.arange(6, dtype="int16").reshape(3, 2)
    constants = [(TENSOR, array), (SHAPE, [4, 5]), (STR, "text"), (INT, -3), (FLOAT, 0.25)]
    seen: list[Any] = []

    def operator(tensor: Any, *others: Any) -> None:
        seen.extend([tensor.numpy().copy(), tensor.numpy().ctypes.data % 64, *others])

    args = [const(i) for i in range(6)]
    one_call("f", 0, *args, imm(-5), VOID, constants=[*constants, (DATA_TYPE, INT64)], f=operator)()
    assert (seen[0] == array).all()
    assert seen[1:] == [0, (4, 5), "text", -3, 0.25, "int64", -5, None]


def test_a_string_constant_may_contain_nul() -> None:
    """Strings of the payload have a length, as in TVM."""
    program = Program(
        [Code("main", [], [call(0, 1, const(0)), ret(0)], 1), packed("vm.builtin.copy")],
        [(STR, "a\0b")],
    )
    assert load(Reader(program.payload()))["main"]() == "a\0b"


def test_a_returned_constant_outlives_the_model() -> None:
    """A tensor of the payload stays as long as anyone has it."""
    program = Program(
        [Code("main", [], [call(0, 1, const(0)), ret(0)], 1), packed("vm.builtin.copy")],
        [(TENSOR, np.arange(64, dtype="float64"))],
    )
    result = make(program)["main"]()
    gc.collect()
    assert result.numpy().tolist() == list(range(64))
