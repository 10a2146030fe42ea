"""The virtual machine: conditions, recursion, closures."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ...support.vm_assembler import *
from ...support.vm_programs import builtin, closure_program, make, one_call


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
    """Beyond it a call fails, also in a thread with a small stack; the machine stays usable."""
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
    assert errors == ["f: calls are nested too deeply, expected at most 10000"]
    assert main(3) == "done"


def test_registers_of_recursion_have_a_limit() -> None:
    """Large functions reach it before the limit of calls."""
    code = [*[call(1, 0)] * 10_000, call(VOID, 1, reg(0)), ret(0)]
    main = make(Program([packed("vm.builtin.null_value"), Code("f", ["n"], code, 40_000)]))["f"]
    with pytest.raises(
        RecursionError, match="f: nested calls use too many registers, expected at most 8388608"
    ):
        main(0)


def test_reentering_the_machine_has_a_limit() -> None:
    """Python code between runs uses the C stack."""
    main = one_call("again", 1, reg(0), again=lambda n: main(n + 1))
    with pytest.raises(RecursionError, match="callees re-enter the virtual machine too deeply"):
        main(0)
    assert one_call("once", 1, reg(0), once=lambda n: n + 1)(1) == 2


def test_closures_have_their_last_arguments() -> None:
    """Saved arguments follow the arguments of the call."""
    model = make(closure_program(), join=lambda a, b: f"{a}{b}")
    assert model["main"]("A", "B") == "BA"


def test_a_closure_outlives_its_model() -> None:
    """Python sees a function, which keeps its machine and its saved values."""
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
    """A function is passed as an argument; call_tir_dyn appends the extents of a shape."""
    program = Program(
        [
            Code("main", ["x"], [call(1, 2, func(1), reg(0), const(0)), ret(1)], 2),
            packed("operator"),
            packed("vm.builtin.call_tir_dyn"),
        ],
        [(SHAPE, [7, 8])],
    )
    assert make(program, operator=lambda *args: str(args))["main"]("x") == "('x', 7, 8)"


def test_the_machines_own_functions_are_not_values() -> None:
    """Passing such a function is refused when the model is bound, by name."""
    program = Program(
        [Code("main", [], [call(0, 1, func(1)), ret(0)], 1), packed("vm.builtin.copy")]
    )
    with pytest.raises(
        TypeError, match="main: passes the built-in function 'vm.builtin.copy' as an"
    ):
        make(program).find_function("main")
