"""The virtual machine: checks of arguments, errors, unknown functions."""

from __future__ import annotations

import numpy as np
import pytest

import runtime
from runtime import FunctionNotFoundError

from ...support.vm_assembler import *
from ...support.vm_programs import builtin, make, one_call

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


def test_an_exception_of_a_function_arrives_as_itself() -> None:
    """An exception of a Python function is that very one."""
    error = KeyError("mine")

    def fail(_: object) -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        one_call("fail", 1, reg(0), fail=fail)(np.zeros(3))
    assert caught.value is error


def test_unknown_functions_are_named() -> None:
    """The first look-up lists all unknown names, and offers similar ones."""
    names = ["vm.builtin.attention_kv_cache_append", "operater"]
    program = Program(
        [Code("main", [], [call(0, 1), call(0, 2), ret(0)], 1), *(packed(name) for name in names)]
    )
    model = make(program)
    with pytest.raises(FunctionNotFoundError, match=", ".join(f"'{name}'" for name in names)):
        model["main"]
    assert model.function_names() == ["main"]


def test_global_functions_provide_missing_functions() -> None:
    """A registered function is called by its name."""
    runtime.register_func("test.vm.twice", override=True)(lambda x: 2 * x)
    assert one_call("test.vm.twice", 1, reg(0))(21) == 42


def test_compiled_functions_are_refused_by_name() -> None:
    """exec_mode="compiled" has no bytecode to run."""
    program = Program([Code("main", ["x"], registers=2, kind=2)])
    program.rows[0] = [0, 0, 1, 2]
    with pytest.raises(TypeError, match="'main' is a compiled function, expected bytecode; build"):
        make(program)["main"]
