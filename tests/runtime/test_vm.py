"""The virtual machine: instructions, values, its own functions, errors. No TVM is needed."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime import FunctionNotFoundError, _core
from runtime.modules.vm import VMExecutable, load
from runtime.relax.vm import VirtualMachine
from runtime.stream import Reader

from ..vm_assembler import (
    CONTEXT,
    DATA_TYPE,
    FLOAT,
    FLOAT32,
    INT,
    INT64,
    SHAPE,
    STR,
    TENSOR,
    TWICE,
    TWICE_SOURCE,
    UINT8,
    VOID,
    Code,
    Program,
    branch,
    call,
    const,
    doubling,
    func,
    goto,
    imm,
    packed,
    reg,
    ret,
)


class Operators(runtime.Module):
    """Python functions in the place of compiled operators."""

    type_key = "test.operators"

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.functions = functions

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find one of them."""
        return self.functions.get(name)


def make(program: Program, **functions: Callable[..., Any]) -> VMExecutable:
    """An executable over Python functions."""
    executable = load(Reader(program.payload()))
    executable.import_module(Operators(**functions))
    return executable


def one_call(
    name: str,
    num_params: int,
    *args: int,
    constants: list[tuple[int, Any]] | None = None,
    **functions: Callable[..., Any],
) -> Callable[..., Any]:
    """A function that gives what one call gives; its parameters are registers 0 and on."""
    params = [f"p{i}" for i in range(num_params)]
    code = [call(num_params, 1, *args), ret(num_params)]
    main = Code("main", params, code, num_params + 1)
    return make(Program([main, packed(name)], constants or []), **functions)["main"]


def builtin(name: str, num_params: int, *args: int, **options: Any) -> Callable[..., Any]:
    """The same of one of the machine's own functions."""
    return one_call(f"vm.builtin.{name}", num_params, *args, **options)


def identity() -> Callable[..., Any]:
    """A function that returns its argument."""
    return make(Program([Code("main", ["x"], [ret(0)], 1)]))["main"]


# ---- Memory


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


# ---- Values in and out


@pytest.mark.parametrize("value", [None, 3, -(2**63), True, 0.5, "short", "longer than 7", b"by"])
def test_plain_values_pass_through(value: object) -> None:
    """Numbers, strings and None come back as they went in."""
    result = identity()(value)
    assert result == value and type(result) is type(value)


def test_a_returned_argument_is_a_copy() -> None:
    """What a model returns never is the caller's array."""
    array = np.arange(4, dtype="float32")
    result = identity()(array)
    array[0] = 9
    assert result.numpy().tolist() == [0, 1, 2, 3]


def test_a_machine_made_tensor_passes_without_a_copy() -> None:
    """A result that goes in again is the same memory, which its object keeps."""
    first = identity()(np.arange(4, dtype="float32"))
    second = identity()(first)
    assert first.numpy().ctypes.data == second.numpy().ctypes.data
    del first
    assert second.numpy().tolist() == [0, 1, 2, 3]


def test_tuples_go_in_and_come_out() -> None:
    """Tuples and lists become tuples, nested ones too; tensors in them are kept."""
    array = np.arange(3, dtype="int64")
    number, (text, tensor), empty = identity()((1, ["x" * 20, array], ()))
    assert (number, text, empty) == (1, "x" * 20, ())
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_a_tuple_with_what_cannot_be_passed_is_refused() -> None:
    """The item is named, and why is the cause."""
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
    """What comes in may be nested 64 deep."""
    nested: Any = 1
    for _ in range(depth):
        nested = (nested,)
    if depth == 64:
        assert identity()(nested) == nested
    else:
        with pytest.raises(ValueError, match="tuples in tuples, expected at most 64"):
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
    """No copy where none is needed."""
    tensor, seen = runtime.empty((4,)), []
    one_call("operator", 1, reg(0), operator=lambda t: seen.append(t.numpy().ctypes.data))(tensor)
    assert seen == [tensor.numpy().ctypes.data]


def test_arrays_are_let_go_after_the_call() -> None:
    """Nothing keeps an argument, in a tuple or alone."""
    array = np.zeros(4, "float32")
    gone = weakref.ref(array)
    one_call("operator", 1, reg(0), operator=lambda t: None)((array,))
    identity()(array)
    del array
    assert gone() is None


@pytest.mark.parametrize("count", [0, 2])
def test_the_number_of_arguments_is_checked(count: int) -> None:
    """A call with too few or too many says how many there should be."""
    with pytest.raises(TypeError, match=f"main: expected 1 arguments, found {count}"):
        identity()(*range(count))


# ---- Constants


def test_constants_are_what_the_payload_says() -> None:
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


# ---- Control


def conditional() -> Callable[..., Any]:
    """``1 if c else 2``, as the compiler writes it."""
    code = [
        call(1, 1, reg(0)),
        branch(1, 3),
        call(2, 2, imm(1)),
        goto(2),
        call(2, 2, imm(2)),
        ret(2),
    ]
    functions = [
        Code("main", ["c"], code, 3),
        packed("vm.builtin.read_if_cond"),
        packed("vm.builtin.copy"),
    ]
    return make(Program(functions))["main"]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64"])
def test_conditions_are_read_from_tensors(dtype: str) -> None:
    """A scalar of any int type, or a bool, decides."""
    main = conditional()
    assert [main(np.array(value, dtype)) for value in (0, 1)] == [2, 1]
    assert [main(value) for value in (True, False, 1, 0)] == [1, 2, 1, 2]


@pytest.mark.parametrize("value", [np.zeros(2, "int32"), np.float32(1) * np.ones(()), "x", None])
def test_other_conditions_are_refused(value: object) -> None:
    """Neither floats nor vectors are conditions."""
    with pytest.raises(TypeError, match="read_if_cond: argument 1, expected bool, or a tensor"):
        conditional()(value)


def test_a_condition_in_a_register_is_a_number() -> None:
    """A branch on anything else is an error, not a guess."""
    main = make(Program([Code("main", ["c"], [branch(0, 2), ret(0), ret(0)], 1)]))["main"]
    with pytest.raises(TypeError, match="main: condition, expected an int or bool"):
        main("x")


def countdown() -> Callable[..., Any]:
    """``f(n) = n == 0 ? "done" : f(n - 1)``."""
    code = [
        branch(0, 4),
        call(1, 1, reg(0)),
        call(2, 0, reg(1)),
        ret(2),
        call(2, 2, const(0)),
        ret(2),
    ]
    functions = [Code("f", ["n"], code, 3), packed("minus_one"), packed("vm.builtin.copy")]
    return make(Program(functions, [(STR, "done")]), minus_one=lambda n: n - 1)["f"]


def test_functions_call_themselves() -> None:
    """Recursion uses no C stack: thousands of calls deep."""
    assert countdown()(9000) == "done"


def test_recursion_has_a_limit() -> None:
    """Beyond it there is an error, in a thread of little stack too; the machine stays usable."""
    main, errors = countdown(), []

    def run() -> None:
        try:
            main(10**6)
        except RecursionError as error:
            errors.append(str(error))

    before = threading.stack_size(64 * 1024)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.stack_size(before)
    assert errors == ["f: calls in calls, expected at most 10000"]
    assert main(3) == "done"


def test_registers_of_recursion_have_a_limit() -> None:
    """Large functions reach it before the limit of calls."""
    code = [*[call(1, 0)] * 10_000, call(VOID, 1, reg(0)), ret(0)]
    main = make(Program([packed("vm.builtin.null_value"), Code("f", ["n"], code, 40_000)]))["f"]
    with pytest.raises(RecursionError, match="f: calls in calls, expected at most 8388608 regis"):
        main(0)


def test_a_machine_that_is_called_by_what_it_calls_has_a_limit() -> None:
    """Python code between runs uses the C stack."""
    main = one_call("again", 1, reg(0), again=lambda n: main(n + 1))
    with pytest.raises(RecursionError, match="calls of the machine by what it calls"):
        main(0)
    assert one_call("once", 1, reg(0), once=lambda n: n + 1)(1) == 2


# ---- Functions as values


def closure_program() -> Program:
    """``make(a)`` gives ``inner`` with a saved; ``main(a, b)`` calls it with b."""
    make_code = [call(1, 3, func(2), reg(0)), ret(1)]
    main_code = [call(2, 0, reg(0)), call(3, 5, CONTEXT, reg(2), reg(1)), ret(3)]
    return Program(
        [
            Code("make", ["a"], make_code, 2),
            Code("main", ["a", "b"], main_code, 4),
            Code("inner", ["b", "a"], [call(2, 4, reg(0), reg(1)), ret(2)], 3),
            packed("vm.builtin.make_closure"),
            packed("join"),
            packed("vm.builtin.invoke_closure"),
        ]
    )


def test_closures_have_their_last_arguments() -> None:
    """Saved arguments come behind those of the call."""
    model = make(closure_program(), join=lambda a, b: f"{a}{b}")
    assert model["main"]("A", "B") == "BA"


def test_a_closure_outlives_its_model() -> None:
    """It is a function for Python, and keeps its machine and what it saved."""
    join: Callable[..., str] = lambda a, b: f"{a}{b.numpy().tolist()}"  # noqa: E731
    closure = make(closure_program(), join=join)["make"](np.arange(3))
    gc.collect()
    assert closure("x") == "x[0, 1, 2]"
    with pytest.raises(TypeError, match="inner: expected 2 arguments, found 3"):
        closure(1, 2)


def test_closures_of_python_are_invoked() -> None:
    """A function from outside can be invoked, and bound to arguments."""
    invoke = builtin("invoke_closure", 2, CONTEXT, reg(0), reg(1))
    assert invoke(lambda x: x * 2, 21) == 42
    bind = builtin("make_closure", 2, reg(0), reg(1))
    assert bind(lambda a, b: a - b, 1)(10) == 9
    with pytest.raises(TypeError, match="invoke_closure: argument 2, expected a function"):
        invoke(3, 21)
    with pytest.raises(TypeError, match="make_closure: argument 1, expected a function, found int"):
        bind(3, 21)


def test_operators_are_passed_as_values() -> None:
    """A function by name as an argument: with the extents of a shape behind it."""
    program = Program(
        [
            Code("main", ["x"], [call(1, 2, func(1), reg(0), const(0)), ret(1)], 2),
            packed("operator"),
            packed("vm.builtin.call_tir_dyn"),
        ],
        [(SHAPE, [7, 8])],
    )
    assert make(program, operator=lambda *args: str(args))["main"]("x") == "('x', 7, 8)"


def test_the_machines_own_functions_are_no_values() -> None:
    """Passing one on is refused when the model is bound, by name."""
    program = Program(
        [Code("main", [], [call(0, 1, func(1)), ret(0)], 1), packed("vm.builtin.copy")]
    )
    with pytest.raises(TypeError, match="main: passes 'vm.builtin.copy' on, expected a function"):
        make(program).find_function("main")


# ---- Memory


def allocating(nbytes: int, offset: int, shape: list[int]) -> Callable[..., Any]:
    """A tensor of float32 in a storage, filled by an operator."""
    code = [
        call(0, 1, CONTEXT, const(0), imm(0), const(1), const(2)),
        call(1, 2, reg(0), imm(offset), const(3), const(4)),
        call(0, 3),
        call(VOID, 4, reg(1)),
        ret(1),
    ]
    names = ["alloc_storage", "alloc_tensor", "null_value"]
    functions = [Code("main", [], code, 2), *(packed(f"vm.builtin.{n}") for n in names)]
    constants = [
        *((SHAPE, [nbytes]), (DATA_TYPE, UINT8), (STR, "global")),
        *((SHAPE, shape), (DATA_TYPE, FLOAT32)),
    ]
    counter = iter(range(1, 1000))
    program = Program([*functions, packed("fill")], constants)
    return make(program, fill=lambda tensor: tensor.numpy().fill(next(counter)))["main"]


def test_results_are_never_written_to_again() -> None:
    """Memory is used again only once nobody has the tensor."""
    main = allocating(64, 0, [4, 4])
    results = [main() for _ in range(5)]
    assert [r.numpy()[0, 0] for r in results] == [1, 2, 3, 4, 5]
    addresses = {result.numpy().ctypes.data for result in results}
    results.clear()
    assert main().numpy().ctypes.data in addresses


def test_a_tensor_outlives_its_machine() -> None:
    """The pool goes with its last piece."""
    result = allocating(64, 16, [3])()
    gc.collect()
    assert result.numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("nbytes", "offset", "shape"),
    [(64, 0, [17]), (64, 4, [16]), (64, -4, [4]), (64, 65, [0]), (0, 0, [1]), (64, 0, [2**62, 4])],
)
def test_a_tensor_lies_in_its_storage(nbytes: int, offset: int, shape: list[int]) -> None:
    """Row D10: a tensor beyond its storage is refused, however the sizes multiply."""
    with pytest.raises(
        ValueError, match="alloc_tensor: a tensor at offset .* that does not lie in"
    ):
        allocating(nbytes, offset, shape)()


def test_a_storage_beyond_memory_is_refused() -> None:
    """No memory is an error that says how much was asked for."""
    with pytest.raises(runtime.DeviceError, match="cpu:0: no memory for 1152921504606846976 bytes"):
        allocating(2**60, 0, [1])()


def test_a_storage_on_no_device_is_refused() -> None:
    """The code's index of a device is checked."""
    alloc = builtin("alloc_storage", 1, CONTEXT, const(0), reg(0), const(1), const(2),
                    constants=[(SHAPE, [4]), (DATA_TYPE, UINT8), (STR, "global")])  # fmt: skip
    with pytest.raises(
        runtime.DeviceError, match="asks for device 1 of the machine, expected less"
    ):
        alloc(1)


def test_reshape_is_a_view() -> None:
    """The elements stay where they are; a returned view of an argument is a copy."""
    reshape = builtin("reshape", 2, reg(0), reg(1))
    tensor = identity()(np.arange(6, dtype="int32"))
    view = reshape(tensor, (2, 3))
    assert view.numpy().ctypes.data == tensor.numpy().ctypes.data
    del tensor
    assert view.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    array = np.arange(6, dtype="int32")
    result = reshape(array, (3, 2))
    array[:] = 0
    assert result.numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="a shape with other elements than its tensor"):
        reshape(array, (4, 2))


def test_a_lent_view_in_a_tuple_is_kept() -> None:
    """What a tuple or closure keeps of an argument is a copy of it."""
    names = ["reshape", "make_tuple"]
    code = [call(1, 1, reg(0), const(0)), call(2, 2, reg(1), reg(0)), ret(2)]
    functions = [Code("main", ["x"], code, 3), *(packed(f"vm.builtin.{n}") for n in names)]
    array = np.arange(4, dtype="float64")
    view, whole = make(Program(functions, [(SHAPE, [2, 2])]))["main"](array)
    array[:] = 0
    assert view.numpy().tolist() == [[0, 1], [2, 3]] and whole.numpy().tolist() == [0, 1, 2, 3]


def test_to_device_knows_the_machines_devices() -> None:
    """A tensor stays where it is, or goes where the machine has memory."""
    to_device = builtin("to_device", 2, reg(0), reg(1), imm(0))
    assert to_device(np.ones(2, "float32"), 1).numpy().tolist() == [1, 1]
    with pytest.raises(runtime.DeviceError, match="device type 4, id 0, which the machine was not"):
        to_device(np.ones(2, "float32"), 4)


def test_arrays_can_be_reset_in_place() -> None:
    """An item of a tuple can be let go before the tuple."""
    names = ["make_tuple", "tuple_reset_item"]
    code = [call(1, 1, reg(0), imm(5)), call(VOID, 2, reg(1), imm(0)), ret(1)]
    functions = [Code("main", ["x"], code, 2), *(packed(f"vm.builtin.{n}") for n in names)]
    assert make(Program(functions))["main"](np.ones(3)) == (None, 5)


@pytest.mark.parametrize("index", [-1, 2])
def test_items_of_tuples_are_in_range(index: int) -> None:
    """Row D10: an index beyond a tuple is an error."""
    get = builtin("tuple_getitem", 2, reg(0), reg(1))
    assert get(("a", "b"), 1) == "b"
    with pytest.raises(IndexError, match=f"tuple_getitem: index {index}, expected less than 2"):
        get(("a", "b"), index)
    with pytest.raises(TypeError, match="tuple_getitem: argument 1, expected a tuple, found int"):
        get(3, index)


def test_deep_tuples_end_without_recursion() -> None:
    """Thousands of tuples in tuples are released one after the other."""
    code = [
        branch(0, 5),
        call(2, 1, reg(0)),
        call(3, 2, reg(1)),
        call(4, 0, reg(2), reg(3)),
        ret(4),
        ret(0),
    ]
    functions = [
        Code("f", ["n", "t"], code, 5),
        packed("minus_one"),
        packed("vm.builtin.make_tuple"),
    ]
    assert make(Program(functions), minus_one=lambda n: n - 1)["f"](9000, 1) == 0


def counted(first: list[int], step: list[int], name: str, constants: Any) -> Callable[..., Any]:
    """A function that makes a value, and then n times another one of it; function 3 is a leaf."""
    code = [first, branch(0, 4), call(0, 1, reg(0)), step, goto(-3), ret(0)]
    functions = [packed("minus_one"), packed(f"vm.builtin.{name}"), packed("leaf")]
    program = Program([Code("f", ["n"], code, 2), *functions], constants)
    return make(program, minus_one=lambda n: n - 1, leaf=lambda *args: args)["f"]


@pytest.mark.parametrize(
    ("first", "step", "name", "constants"),
    [
        (
            call(1, 2, const(0), const(1)),
            call(1, 2, reg(1), const(1)),
            "reshape",
            [(TENSOR, np.zeros(4, "f4")), (SHAPE, (2, 2))],
        ),
        (call(1, 2, func(3), imm(0)), call(1, 2, func(3), reg(1)), "make_closure", []),
    ],
    ids=["views", "closures"],
)
def test_what_holds_another_ends_without_recursion(first, step, name, constants) -> None:
    """Row G19: views of views, and closures in closures, are as deep as a program makes them."""
    main, results = counted(first, step, name, constants), []
    before = threading.stack_size(128 * 1024)
    thread = threading.Thread(target=lambda: results.append(main(20_000)))
    thread.start()
    thread.join()
    threading.stack_size(before)
    assert results == [0]


# ---- Shapes


def shape_function(*pairs: int, heap: bool = True) -> Callable[..., Any]:
    """Match an argument's extents against pairs, then make a shape of slots 0 and 1."""
    names = ["alloc_shape_heap", "match_shape", "make_shape"]
    code = [
        call(1, 1, CONTEXT, imm(2)),
        call(VOID, 2, reg(0), reg(1) if heap else VOID, imm(len(pairs) // 2), *pairs, const(0)),
        call(2, 3, reg(1), imm(3), imm(1), imm(1), imm(0), imm(9), imm(1), imm(0)),
        ret(2),
    ]
    functions = [Code("main", ["x"], code, 3), *(packed(f"vm.builtin.{n}") for n in names)]
    return make(Program(functions, [(STR, "ErrorContext(fn=main, param=x) ")]))["main"]


def pairs(*numbers: int) -> list[int]:
    """Immediates."""
    return [imm(number) for number in numbers]


@pytest.mark.parametrize("wrap", [np.zeros, tuple], ids=["tensor", "tuple"])
def test_extents_are_matched_and_made(wrap: Callable[[Any], Any]) -> None:
    """Store two extents, compare one with a number, skip one, compare one with a slot."""
    match = shape_function(*pairs(1, 0, 1, 1, 0, 4, 2, 0, 3, 1))
    assert match(wrap((2, 3, 4, 5, 3))) == (3, 9, 2)
    for wrong, text in [
        ((2, 3, 5, 5, 3), "extent 2, expected 4, found 5"),
        ((2, 3, 4, 5, 2), "extent 4, expected 3, found 2"),
        ((2, 3), "2 dimensions, expected 5"),
    ]:
        with pytest.raises(ValueError, match=rf"ErrorContext\(fn=main, param=x\): {text}"):
            match(wrap(wrong))


@pytest.mark.parametrize(
    ("numbers", "heap", "error", "message"),
    [
        ([1, 2], True, IndexError, "match_shape: slot 2 of the shape heap, expected less than 2"),
        ([1, -1], True, IndexError, "slot -1 of the shape heap"),
        ([3, 1 << 50], True, IndexError, "slot 1125899906842624 of the shape heap"),
        ([1, 0], False, IndexError, "slot 0 of the shape heap, expected less than 0"),
        ([4, 0], True, ValueError, "match_shape: code 4, expected 0 to 3"),
        ([-1, 0], True, ValueError, "match_shape: code -1, expected 0 to 3"),
    ],
)
def test_slots_and_codes_are_in_range(
    numbers: list[int], heap: bool, error: type[Exception], message: str
) -> None:
    """Row D10: neither a slot nor a code leads out of the heap."""
    with pytest.raises(error, match=message):
        shape_function(*pairs(*numbers), heap=heap)((5,))


@pytest.mark.parametrize("count", [-1, 0, 2, 1 << 40])
def test_counts_of_pairs_are_checked(count: int) -> None:
    """Row D10: the count that an instruction speaks of is that of its arguments."""
    match = builtin("match_shape", 1, reg(0), VOID, imm(count), imm(2), imm(0), VOID)
    with pytest.raises(ValueError, match=f"match_shape: {count} pairs of code and operand"):
        match((5,))


def test_numbers_are_matched_and_made() -> None:
    """The same of single numbers."""
    match = builtin("match_prim_value", 1, reg(0), VOID, imm(0), imm(7), VOID)
    assert match(7) is None
    with pytest.raises(ValueError, match="expected 7, found 8"):
        match(8)
    with pytest.raises(TypeError, match="match_prim_value: argument 1, expected int, found str"):
        match("x")
    assert builtin("make_prim_value", 0, VOID, imm(0), imm(7))() == 7
    with pytest.raises(ValueError, match="make_prim_value: code 2, expected 0 or 1"):
        builtin("make_prim_value", 0, VOID, imm(2), imm(7))()


@pytest.mark.parametrize("wrong", [np.zeros(2, "int64"), runtime.empty((2,), "int64"), 3])
def test_only_what_alloc_shape_heap_made_is_a_heap(wrong: object) -> None:
    """Row D10: another tensor may be memory that is not to be written."""
    text = "argument 2, expected a shape heap that alloc_shape_heap made, found"
    with pytest.raises(TypeError, match=f"match_shape: {text}"):
        builtin("match_shape", 1, const(0), reg(0), imm(0), VOID, constants=[(SHAPE, [])])(wrong)
    with pytest.raises(TypeError, match=f"match_prim_value: {text}"):
        builtin("match_prim_value", 1, imm(0), reg(0), imm(1), imm(0), VOID)(wrong)


def test_a_view_of_a_heap_is_none() -> None:
    """The flag is the heap's alone; the heap itself may leave the machine and come back."""
    heap = builtin("alloc_shape_heap", 0, CONTEXT, imm(2))()
    make_shape = builtin("make_shape", 1, reg(0), imm(1), imm(1), imm(0))
    heap.numpy()[0] = 5
    assert make_shape(heap) == (5,)
    view = builtin("reshape", 1, reg(0), const(0), constants=[(SHAPE, [2])])(heap)
    with pytest.raises(TypeError, match="make_shape: argument 1, expected a shape heap"):
        make_shape(view)


@pytest.mark.parametrize("count", [-1, (1 << 20) + 1, 1 << 54])
def test_a_heap_has_a_limit(count: int) -> None:
    """Row D10: a number in the code is no reason to allocate."""
    alloc = builtin("alloc_shape_heap", 0, CONTEXT, imm(count))
    with pytest.raises(ValueError, match=f"alloc_shape_heap: {count} slots, expected 0 to 1048576"):
        alloc()


def test_shapes_of_tensors_and_tensors_as_shapes() -> None:
    """Both ways."""
    assert builtin("shape_of", 1, reg(0))(np.zeros((2, 0, 3))) == (2, 0, 3)
    to_shape = builtin("tensor_to_shape", 1, reg(0))
    assert to_shape(np.array([4, 5], "int64")) == to_shape(np.array([4, 5], "int32")) == (4, 5)
    for wrong in (np.zeros(2, "float32"), np.zeros((1, 1), "int64"), np.zeros(65, "int64"), "x"):
        with pytest.raises(TypeError, match="tensor_to_shape: argument 1, expected a vector of"):
            to_shape(wrong)


# ---- Checks

FLOATS = np.zeros((2, 3), "float32")
CHECKS = [
    ("tensor_info", [imm(2), const(0)], FLOATS, np.zeros(3, "float32"), "1 dimensions, expected 2"),
    (
        "tensor_info",
        [imm(2), const(0)],
        FLOATS,
        FLOATS.astype("float64"),
        "dtype, expected float32, found float64",
    ),
    (
        "tensor_info",
        [imm(-1), const(0)],
        FLOATS[0],
        FLOATS > 0,
        "dtype, expected float32, found bool",
    ),
    ("tensor_info", [imm(-1)], FLOATS > 0, "text", "expected a tensor, found str"),
    ("shape_info", [imm(2)], (1, 2), (1, 2, 3), "3 extents, expected 2"),
    ("shape_info", [imm(-1)], (1, 2), 5, "expected a shape, found int"),
    ("prim_value_info", [const(1)], 5, 0.5, "expected int, found float"),
    ("prim_value_info", [const(0)], 0.5, "x", "expected float, found str"),
    ("prim_value_info", [const(2)], True, 1, "expected bool, found int"),
    ("tuple_info", [imm(2)], (1, 2), (1,), "a tuple of 1, expected 2"),
    ("tuple_info", [imm(-1)], (1, 2), 3, "expected a tuple, found int"),
    ("func_info", [], print, 3, "expected a function, found int"),
    ("string_info", [], "text", 3, "expected str, found int"),
]


@pytest.mark.parametrize(("name", "args", "right", "wrong", "message"), CHECKS)
def test_arguments_are_checked(
    name: str, args: list[int], right: object, wrong: object, message: str
) -> None:
    """Each check lets the right value pass, and names the wrong one after its context."""
    constants = [(DATA_TYPE, FLOAT32), (DATA_TYPE, INT64), (DATA_TYPE, (6, 8, 1)), (STR, "here ")]
    check = builtin(f"check_{name}", 1, reg(0), *args, const(3), constants=constants)
    assert check(right) is None
    with pytest.raises((TypeError, ValueError), match=f"here: {message}"):
        check(wrong)


# ---- Errors


def test_what_a_function_raises_arrives_as_itself() -> None:
    """An exception of a Python function is that very one."""
    error = KeyError("mine")

    def fail(_: object) -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        one_call("fail", 1, reg(0), fail=fail)(np.zeros(3))
    assert caught.value is error


def test_unknown_functions_are_named() -> None:
    """All names that nobody has are told at the first look-up; near ones are offered."""
    names = ["vm.builtin.attention_kv_cache_append", "operater"]
    program = Program(
        [Code("main", [], [call(0, 1), call(0, 2), ret(0)], 1), *(packed(name) for name in names)]
    )
    model = make(program)
    with pytest.raises(FunctionNotFoundError, match=", ".join(f"'{name}'" for name in names)):
        model["main"]
    assert model.function_names() == ["main"]


def test_global_functions_provide_what_is_missing() -> None:
    """A registered function is called by its name."""
    runtime.register_func("test.vm.twice", override=True)(lambda x: 2 * x)
    assert one_call("test.vm.twice", 1, reg(0))(21) == 42


def test_compiled_functions_are_refused_by_name() -> None:
    """exec_mode="compiled" has no bytecode to run."""
    program = Program([Code("main", ["x"], registers=2, kind=2)])
    program.rows[0] = [0, 0, 1, 2]
    with pytest.raises(TypeError, match="'main' is a compiled function, expected bytecode; build"):
        make(program)["main"]


def test_functions_say_what_they_take_and_whose_they_are() -> None:
    """Name and parameters; a function keeps its model, and what is dropped goes at once."""
    model = make(Program([Code("main", ["x", "weight"], [ret(0)], 2)]))
    main: Any = model["main"]
    assert repr(main) == "<Function main: main(x, weight)>" and main.owner is model
    gone = weakref.ref(model)
    gc.disable()
    try:
        del main, model
        assert gone() is None
    finally:
        gc.enable()


# ---- In a library


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_a_model_travels_in_a_library(tmp_path: Path, dialect: str) -> None:
    """Bytecode over host code is exported and loaded in both dialects."""
    (tmp_path / "twice.c").write_text(TWICE_SOURCE)
    model = load(Reader(doubling().payload()))
    model.import_module(packer.CSourceModule(tmp_path / "twice.c", functions={"twice": TWICE}))
    packer.export_library(model, tmp_path / "model.so", format=dialect)
    loaded = runtime.load(tmp_path / "model.so")
    assert loaded["main"](np.arange(4, dtype="float32")).numpy().tolist() == [0, 2, 4, 6]
    copy = runtime.deserialize_module_from_bytes(
        runtime.serialize_module_to_bytes(loaded, export_dso=False)
    )
    assert copy["main"](np.ones(4, "float32")).numpy().tolist() == [2, 2, 2, 2]


# ---- Threads


def test_threads_share_a_machine() -> None:
    """Each call has a stack of its own."""
    main, results = allocating(256, 0, [64]), []

    def run() -> None:
        for _ in range(50):
            values = set(main().numpy().tolist())
            results.append(len(values))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 200


# ---- TVM's own names


def test_vm_load_executable_has_tvms_protocol() -> None:
    """The module that TVM's class works with."""
    machine = make(closure_program(), join=lambda a, b: f"{a}{b}")["vm_load_executable"]()
    machine["vm_initialization"](1, 0, 2)
    machine["set_input"]("main", "A", "B")
    machine["invoke_stateful"]("main")
    assert machine["get_output"]("main") == "BA"
    assert machine["get_output_arity"]("main") == -1
    assert machine["get_function_arity"]("main") == 2
    assert machine["get_function_param_name"]("main", 1) == "b"
    assert machine["invoke_closure"](machine["make"]("1"), "2") == "21"
    with pytest.raises(ValueError, match="2 numbers, expected 3 per device"):
        machine["vm_initialization"](1, 0)


def test_the_class_has_tvms_methods() -> None:
    """Inputs by name, outputs that are tuples, saved calls, timing."""
    names = ["vm.builtin.make_tuple"]
    code = [call(2, 1, reg(1), reg(0)), ret(2)]
    program = Program([Code("main", ["x", "y"], code, 3), *(packed(name) for name in names)])
    machine = VirtualMachine(make(program), "cpu")
    machine.set_input("main", 1, x=2)
    machine.invoke_stateful("main")
    assert machine.get_outputs("main") == (1, 2) == machine["main"](2, 1)
    machine.save_function("main", "saved", 3, 4)
    assert machine["saved"]() == (4, 3)
    machine.save_function("main", "quiet", 3, 4, include_return=False)
    assert machine["quiet"]() is None
    assert machine.time_evaluator("saved", number=2)().mean > 0
    assert machine.module["get_output_arity"]("main") == 2


def test_the_class_refuses_wrong_use() -> None:
    """Each mistake by its own error."""
    machine = VirtualMachine(make(Program([Code("main", ["x"], [ret(0)], 1)])))
    with pytest.raises(ValueError, match="no input of 'main' was set; set_input does"):
        machine.invoke_stateful("main")
    with pytest.raises(ValueError, match="'main' was not invoked; invoke_stateful does"):
        machine.get_outputs("main")
    with pytest.raises(TypeError, match="'main' takes 1 arguments, found 2"):
        machine.set_input("main", 1, 2)
    with pytest.raises(TypeError, match="main: no parameter 'z', expected of"):
        machine.set_input("main", z=1)
    with pytest.raises(ValueError, match="'main' is a function of the model"):
        machine.save_function("main", "main", 1)
    with pytest.raises(FunctionNotFoundError, match="has no function 'other'"):
        machine.set_input("other", 1)
    with pytest.raises(FunctionNotFoundError, match="vm_load_executable"):
        VirtualMachine(runtime.Module())
