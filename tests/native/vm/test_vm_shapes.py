"""The virtual machine: shapes matched and made, and the shape heap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime

from ...support.vm_assembler import *
from ...support.vm_programs import builtin, make


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
        ((2, 3, 5, 5, 3), "extent of axis 2, expected 4, found 5"),
        ((2, 3, 4, 5, 2), "extent of axis 4, expected 3, found 2"),
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
    """Neither a slot nor a code leads out of the heap."""
    with pytest.raises(error, match=message):
        shape_function(*pairs(*numbers), heap=heap)((5,))


@pytest.mark.parametrize("count", [-1, 0, 2, 1 << 40])
def test_counts_of_pairs_are_checked(count: int) -> None:
    """The count that an instruction speaks of is that of its arguments."""
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
def test_only_alloc_shape_heap_makes_heaps(wrong: object) -> None:
    """Another tensor may be memory that must not be written."""
    text = "argument 2, expected a shape heap that alloc_shape_heap made, found"
    with pytest.raises(TypeError, match=f"match_shape: {text}"):
        builtin("match_shape", 1, const(0), reg(0), imm(0), VOID, constants=[(SHAPE, [])])(wrong)
    with pytest.raises(TypeError, match=f"match_prim_value: {text}"):
        builtin("match_prim_value", 1, imm(0), reg(0), imm(1), imm(0), VOID)(wrong)


def test_a_view_of_a_heap_is_none() -> None:
    """The flag belongs to the heap alone; the heap itself may leave the machine and return."""
    heap = builtin("alloc_shape_heap", 0, CONTEXT, imm(2))()
    make_shape = builtin("make_shape", 1, reg(0), imm(1), imm(1), imm(0))
    heap.numpy()[0] = 5
    assert make_shape(heap) == (5,)
    view = builtin("reshape", 1, reg(0), const(0), constants=[(SHAPE, [2])])(heap)
    with pytest.raises(TypeError, match="make_shape: argument 1, expected a shape heap"):
        make_shape(view)


@pytest.mark.parametrize("count", [-1, (1 << 20) + 1, 1 << 54])
def test_a_heap_has_a_limit(count: int) -> None:
    """A number in the code does not allocate memory without limit."""
    alloc = builtin("alloc_shape_heap", 0, CONTEXT, imm(count))
    with pytest.raises(ValueError, match=f"alloc_shape_heap: {count} slots, expected 0 to 1048576"):
        alloc()


def test_shapes_of_tensors_and_tensors_as_shapes() -> None:
    """A shape is made of an array's extents, or of the elements of a vector."""
    assert builtin("shape_of", 1, reg(0))(np.zeros((2, 0, 3))) == (2, 0, 3)
    to_shape = builtin("tensor_to_shape", 1, reg(0))
    assert to_shape(np.array([4, 5], "int64")) == to_shape(np.array([4, 5], "int32")) == (4, 5)
    for wrong in (np.zeros(2, "float32"), np.zeros((1, 1), "int64"), np.zeros(65, "int64"), "x"):
        with pytest.raises(TypeError, match="tensor_to_shape: argument 1, expected a vector of"):
            to_shape(wrong)
