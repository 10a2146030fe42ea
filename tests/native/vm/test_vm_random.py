"""Random bytecode that the verifier lets pass: it may raise, and do nothing worse."""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

import runtime
from runtime import _core
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.vm_assembler import *

BUILTINS = _core.vm_builtin_names()
REGISTERS, ROUTINES, PROGRAMS = 6, 3, 40
CONSTANTS = [
    *((SHAPE, [64]), (SHAPE, [2, 3]), (SHAPE, []), (SHAPE, [0]), (STR, "global")),
    *((DATA_TYPE, FLOAT32), (DATA_TYPE, INT64), (DATA_TYPE, UINT8), (FLOAT, 1.5), (INT, 2)),
    (TENSOR, np.arange(6, dtype="float32")),
    (TENSOR, np.array(1, dtype="int32")),
]
# Calls that succeed more often than not: a storage is in register 1, a heap in 2, tensors in 3, a
# shape in 4, tuples in 5, a closure in 0.
USUAL = [
    (1, "alloc_storage", [CONTEXT, const(0), imm(0), const(7), const(4)]),
    (2, "alloc_shape_heap", [CONTEXT, imm(3)]),
    (3, "alloc_tensor", [reg(1), imm(0), const(1), const(5)]),
    (5, "make_tuple", [reg(0), reg(3), const(10)]),
    (VOID, "match_shape", [reg(3), reg(2), imm(2), *map(imm, (1, 0, 1, 1)), VOID]),
    (4, "make_shape", [reg(2), imm(2), *map(imm, (1, 0, 0, 3))]),
    (5, "make_tuple", [reg(5), reg(4), reg(3)]),
    (3, "reshape", [reg(3), const(1)]),
    (4, "shape_of", [reg(3)]),
    (3, "tuple_getitem", [reg(5), imm(1)]),
    (VOID, "tuple_reset_item", [reg(5), imm(0)]),
    (0, "make_closure", [func(2), reg(3)]),
    (0, "invoke_closure", [CONTEXT, reg(0), reg(5)]),
    (0, "call_tir_dyn", [reg(0), const(2)]),
    (0, "copy", [reg(3)]),
    (3, "to_device", [reg(3), imm(1), imm(0)]),
    (1, "null_value", []),
]


def counts(index: int) -> list[int]:
    """The numbers of arguments that the verifier accepts for one of the machine's functions."""

    def is_accepted(count: int) -> bool:
        code = Code("f", [], [call(VOID, 1, *[VOID] * count), ret(VOID)])
        program = Program([code, packed(BUILTINS[index])])
        try:
            load(Reader(program.payload()))
        except ValueError:
            return False
        return True

    return [count for count in range(9) if is_accepted(count)]


COUNTS = [counts(index) for index in range(len(BUILTINS))]


def an_argument(numbers: random.Random, routine: int) -> int:
    """Anything that the verifier accepts."""
    return numbers.choice(
        [
            *[reg(numbers.randrange(REGISTERS))] * 4,
            imm(numbers.choice([-1, 0, 1, 2, 3, 7, 1 << 40])),
            const(numbers.randrange(len(CONSTANTS))),
            func(numbers.randrange(routine + 1, ROUTINES)) if routine + 1 < ROUTINES else VOID,
            numbers.choice([VOID, CONTEXT]),
        ]
    )


def usual(row: tuple[int, str, list[int]]) -> list[int]:
    """A row of USUAL."""
    return call(row[0], ROUTINES + BUILTINS.index(f"vm.builtin.{row[1]}"), *row[2])


def a_call(numbers: random.Random, routine: int) -> list[int]:
    """A call of one of the machine's own functions, or of a later routine."""
    dst = numbers.choice([VOID, *range(REGISTERS)])
    if routine + 1 < ROUTINES and numbers.random() < 0.15:
        return call(dst, numbers.randrange(routine + 1, ROUTINES), reg(0), reg(3))
    if numbers.random() < 0.92:
        return usual(numbers.choice(USUAL))
    index = numbers.randrange(len(BUILTINS))
    arguments = [an_argument(numbers, routine) for _ in range(numbers.choice(COUNTS[index]))]
    return call(dst, ROUTINES + index, *arguments)


def a_routine(numbers: random.Random, routine: int) -> Code:
    """Instructions that only go forward."""
    count = numbers.randrange(3, 16)
    code = [usual(row) for row in USUAL[:4]]
    for index in range(count):
        left = count - index
        kind = numbers.random()
        if kind < 0.03:
            code.append(branch(numbers.randrange(REGISTERS), numbers.randrange(1, left + 1)))
        elif kind < 0.05:
            code.append(goto(numbers.randrange(1, left + 1)))
        else:
            code.append(a_call(numbers, routine))
    code.append(ret(numbers.randrange(REGISTERS)))
    return Code(f"f{routine}", ["a", "b"], code, REGISTERS)


@pytest.mark.parametrize("seed", range(25))
def test_random_code_is_refused_or_runs(seed: int) -> None:
    """Verified code that uses values of the wrong kind raises an exception."""
    numbers = random.Random(seed)
    outcomes = {"refused": 0, "raised": 0, "ran": 0}
    for _ in range(PROGRAMS):
        functions = [a_routine(numbers, i) for i in range(ROUTINES)]
        payload = Program([*functions, *map(packed, BUILTINS)], CONSTANTS).payload()
        outcomes[run(payload, numbers)] += 1
    assert outcomes["raised"] + outcomes["ran"] > 0


# ---- Results of every data type


def tensors_of(numbers: random.Random) -> tuple[Program, list[tuple[int, Any]]]:
    """A program that returns tensors of random types, extents and offsets; and their layouts."""
    constants: list[tuple[int, Any]] = [(DATA_TYPE, UINT8), (STR, "global")]
    code, expected = [], []
    for index in range(6):
        dtype = (
            numbers.choice([0, 1, 2, 4, 6, 10, 17]),
            numbers.choice(BITS),
            numbers.choice(LANES),
        )
        shape = [numbers.choice([0, 1, 2, 3, 5, 8]) for _ in range(numbers.randrange(4))]
        nbits = dtype[1] * dtype[2]
        count = math.prod(shape)
        nbytes = count if (dtype[0], nbits) == (1, 1) else (count * nbits + 7) // 8
        offset = 64 * numbers.randrange(3)
        at = len(constants)
        constants += [(SHAPE, [offset + nbytes]), (SHAPE, shape), (DATA_TYPE, dtype)]
        code += [
            call(6, 1, CONTEXT, const(at), imm(0), const(0), const(1)),
            call(index, 2, reg(6), imm(offset), const(at + 1), const(at + 2)),
        ]
        expected.append((nbytes, tuple(shape), dtype))
    code += [call(6, 3, *map(reg, range(6))), call(6, 3, reg(6), reg(6)), ret(6)]
    names = ["alloc_storage", "alloc_tensor", "make_tuple"]
    functions = [Code("main", [], code, 7), *(packed(f"vm.builtin.{name}") for name in names)]
    return Program(functions, constants), expected


BITS, LANES = (1, 2, 4, 6, 8, 16, 32, 64), (1, 1, 1, 2, 3, 8)


@pytest.mark.parametrize("seed", range(40))
def test_results_are_read_written_and_copied(seed: int) -> None:
    """Every way to a result's bytes counts them alike, whatever the data type."""
    program, expected = tensors_of(random.Random(seed))
    first, second = load(Reader(program.payload()))["main"]()
    assert first is second
    for result, (nbytes, shape, dtype) in zip(first, expected, strict=True):
        assert (result.nbytes, result.shape, result.dtype_code) == (nbytes, shape, dtype)
        data = bytes(i % 251 for i in range(nbytes))
        result.raw[:] = data
        assert bytes(result.raw) == data
        assert bytes(runtime.empty(shape, dtype).copy_from(result).raw) == data
        capsule = result.__dlpack__(max_version=(1, 0))
        assert bytes(runtime.from_dlpack(capsule).raw) == data
        written = runtime.save_param_dict({"w": result})
        assert bytes(runtime.load_param_dict(written)["w"].raw) == data
        try:
            array = result.numpy()
        except BufferError:
            assert dtype[1] % 8 or dtype[2] > 1 or dtype[0] not in (0, 1, 2)
        else:
            assert pickle.loads(pickle.dumps(copy.copy(array))).tobytes() == data


def run(payload: bytes, numbers: random.Random) -> str:
    """Load it and call it."""
    values: list[Any] = [1, None, "text", (2, 3), np.zeros((2, 3), "float32"), (np.ones(3), (1,))]
    try:
        model = load(Reader(payload))
        model.import_module(runtime.ConstLoaderModule({"global": np.ones(6, "f4")}, {}))
    except ValueError:
        return "refused"
    try:
        model["f0"](numbers.choice(values), numbers.choice(values))
    except (TypeError, ValueError, IndexError, RuntimeError, RecursionError):
        return "raised"
    return "ran"
