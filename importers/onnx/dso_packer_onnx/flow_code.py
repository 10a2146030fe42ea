"""The bytecode of branches and loops.

A body is a function of the program, which checks its arguments as ``main`` does. A loop is a jump
back: what it carries is in registers. The rows that its rounds make are collected in memory that
doubles when it is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from packer.relax import DataType

from .dtypes import data_type
from .extent import Extent, in_c
from .flow_helpers import (
    APPEND,
    FLAG,
    KEEP,
    LESS,
    NBYTES,
    NEXT,
    NUMBER,
    ROOM,
    SET_FLAG,
    SET_NUMBER,
    TOTAL,
)
from .host import COPY
from .operator import shape_of
from .read.objects import object_of
from .sequence_code import write_call
from .shape_codes import EQUAL, EQUAL_TO_SLOT, SLOT, STORE

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Code, Register

    from .operator import Flow, Operator
    from .program import FunctionWriter

_BYTES, _INT64, _BOOL = DataType(1, 8), DataType(0, 64), DataType(6, 8)
_ROOM = 64  # bytes for the first rows
_ITEM = "vm.builtin.tuple_getitem"
_COPY_VALUE = "vm.builtin.copy"


def write_flow(writer: FunctionWriter, operator: Operator) -> None:
    """Write a branch, a loop or a call for a sequence, and learn the extents of its results."""
    flow = operator.flow
    assert flow is not None
    if flow.call:
        results = [write_call(writer, operator)]
    elif flow.num_carried < 0:
        results = _write_branch(writer, operator, flow)
    else:
        results = _Loop(writer, operator, flow).write()
    for value, register in zip(operator.outputs, results, strict=True):
        writer.values[value] = register
        writer.made.add(value)
    _learn(writer, operator, results)


def _write_branch(writer: FunctionWriter, operator: Operator, flow: Flow) -> list[Register]:
    code = writer.code
    arguments = {
        index: writer.argument(operator.inputs[index])
        for index in dict.fromkeys(i for one in flow.arguments for i in one)
    }
    condition = code.call(FLAG, writer.argument(operator.inputs[0]))
    other, end = code.label(), code.label()
    code.jump_if_zero(condition, other)
    first, second = ([arguments[index] for index in one] for one in flow.arguments)
    made = code.call(flow.bodies[0], *first)
    code.jump(end)
    code.place(other)
    code.assign(made, flow.bodies[1], *second)
    code.place(end)
    return _items(code, made, len(operator.outputs))


def _items(code: Code, made: Register, count: int) -> list[Register]:
    """Return the results of a function: one is not in a tuple."""
    return [made] if count == 1 else [code.call(_ITEM, made, i) for i in range(count)]


def _learn(writer: FunctionWriter, operator: Operator, results: Sequence[Register]) -> None:
    """Compare the shapes of results with what is known, and define the symbols that are new."""
    new: dict[str, int] = {}
    for value, register in zip(operator.outputs, results, strict=True):
        if object_of(value):
            continue
        pairs: list[int] = []
        for extent in shape_of(value):
            if isinstance(extent, str) and extent in operator.defines and extent not in new:
                new[extent] = writer.new_slot(in_c(extent))
                pairs += [STORE, new[extent]]
            else:
                pairs += _expected(writer, extent)
        writer.match(register, value, pairs)
    if operator.defines:
        found = {name: writer.slot_value(new[name]) for name in operator.defines}
        writer.define(found)


def _expected(writer: FunctionWriter, extent: Extent) -> list[int]:
    if isinstance(extent, int):
        return [EQUAL, extent]
    return [EQUAL_TO_SLOT, writer.slot(in_c(extent))]


class _Rows:
    """The memory in which the rows of one output are collected."""

    def __init__(self, writer: FunctionWriter, value: ir.Value, defines: Sequence[str]) -> None:
        code = self.code = writer.code
        self.writer, self.value = writer, value
        self.rows = writer.tensor_of((_ROOM,), _BYTES)
        self.room, self.nbytes = code.call(_COPY_VALUE, _ROOM), code.call(_COPY_VALUE, 0)
        self.rounds_slot = writer.new_slot(f"rounds of {value.name}")
        self.bytes_slot = writer.new_slot(f"bytes of {value.name}")
        self.first: list[int] = []  # pairs for the row of the first round, and of later ones
        self.later: list[int] = []
        self.made: list[int] = [SLOT, self.rounds_slot]
        for axis, extent in enumerate(shape_of(value)[1:]):
            if isinstance(extent, int):
                self.first += [EQUAL, extent]
                self.later += [EQUAL, extent]
                self.made += [0, extent]
            else:
                is_new = extent in defines
                key = f"axis {axis} of {value.name}" if is_new else in_c(extent)
                slot = writer.new_slot(key) if is_new else writer.slot(key)
                self.first += [STORE if is_new else EQUAL_TO_SLOT, slot]
                self.later += [EQUAL_TO_SLOT, slot]
                self.made += [SLOT, slot]

    def append(self, row: Register, round_: Register) -> None:
        """Write the end of a round."""
        code, writer = self.code, self.writer
        first, checked, fits = code.label(), code.label(), code.label()
        code.jump_if_zero(round_, first)
        writer.match(row, self.value, self.later)
        code.jump(checked)
        code.place(first)
        writer.match(row, self.value, self.first)
        code.place(checked)
        code.assign(self.nbytes, NBYTES, row)
        needed = code.call(ROOM, round_, self.nbytes, self.room)
        code.jump_if_zero(needed, fits)
        larger = writer.bytes_of(needed, self.bytes_slot)
        code.run(KEEP, self.rows, larger, round_, self.nbytes)
        code.assign(self.rows, _COPY_VALUE, larger)
        code.assign(self.room, _COPY_VALUE, needed)
        code.place(fits)
        code.run(APPEND, row, self.rows, round_, self.nbytes)
        for register in (needed, larger):
            code.release(register)

    def result(self, rounds: Register) -> Register:
        """Write the end of the loop: the rows in a tensor of their size."""
        code, writer = self.code, self.writer
        total = code.call(TOTAL, rounds, self.nbytes)
        writer.store(rounds, self.rounds_slot)
        shape = writer.made_shape(self.made)
        tensor = writer.tensor_in(total, self.bytes_slot, shape, data_type(self.value))
        code.run(COPY, self.rows, tensor, total)
        return tensor


class _Loop:
    """Writes a loop."""

    def __init__(self, writer: FunctionWriter, operator: Operator, flow: Flow) -> None:
        self.writer, self.operator, self.flow, self.code = writer, operator, flow, writer.code

    def write(self) -> list[Register]:
        """Write the loop; returns the carried values and the rows."""
        code, writer, flow, inputs = self.code, self.writer, self.flow, self.operator.inputs
        rounds = code.call(NUMBER, writer.argument(inputs[0]), 0) if flow.has_rounds else None
        first = int(flow.has_rounds)
        if flow.has_condition:
            going = code.call(FLAG, writer.argument(inputs[first]))
        else:
            going = code.call(_COPY_VALUE, 1)
        first += int(flow.has_condition)
        carried = [
            code.call(_COPY_VALUE, writer.argument(value))
            for value in inputs[first : first + flow.num_carried]
        ]
        captured = [writer.argument(inputs[index]) for index in flow.arguments[0]]
        scans = self.operator.outputs[flow.num_carried :]
        rows = [_Rows(writer, value, self.operator.defines) for value in scans]
        round_ = code.call(_COPY_VALUE, 0)
        number, flag = writer.tensor_of((), _INT64), writer.tensor_of((), _BOOL)
        again, end = code.label(), code.label()
        code.place(again)
        if rounds is not None:
            more = code.call(LESS, round_, rounds)
            code.jump_if_zero(more, end)
            code.release(more)
        code.jump_if_zero(going, end)
        code.run(SET_NUMBER, number, round_)
        code.run(SET_FLAG, flag, going)
        made = code.call(flow.bodies[0], number, flag, *carried, *captured)
        items = _items(code, made, 1 + len(carried) + len(rows))
        code.assign(going, FLAG, items[0])
        for register, item in zip(carried, items[1:], strict=False):
            code.assign(register, _COPY_VALUE, item)
        for one, item in zip(rows, items[1 + len(carried) :], strict=True):
            one.append(item, round_)
        code.assign(round_, NEXT, round_)
        code.jump(again)
        code.place(end)
        self._separate(carried, round_)
        return [*carried, *(one.result(round_) for one in rows)]

    def _separate(self, carried: Sequence[Register], round_: Register) -> None:
        """Copy carried values that no round has made: their memory is planned for others."""
        code = self.code
        none, end = code.label(), code.label()
        code.jump_if_zero(round_, none)
        code.jump(end)
        code.place(none)
        for register, value in zip(carried, self.operator.outputs, strict=False):
            if not object_of(value):
                code.assign(register, _COPY_VALUE, self.writer.copied(register, value))
        code.place(end)
