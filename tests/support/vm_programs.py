"""Small programs for the virtual machine, and operators for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import runtime
from runtime.modules.vm import VMExecutable, load
from runtime.serial.stream import Reader

from .vm_assembler import (
    CONTEXT,
    DATA_TYPE,
    FLOAT32,
    SHAPE,
    STR,
    UINT8,
    VOID,
    Code,
    Program,
    call,
    const,
    func,
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
    """A function that returns the result of one call; its parameters are registers 0 and on."""
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
