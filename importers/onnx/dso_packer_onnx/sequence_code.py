"""The bytecode of sequences, which are tuples, and of optionals, which may be None.

A tensor of a sequence has separate memory: the plan of the graph uses the memory of other values
again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from packer.relax import DataType

from .dtypes import data_type
from .flow_helpers import NUMBER, SET_FLAG, SET_NUMBER
from .operator import shape_of
from .read.objects import object_of

if TYPE_CHECKING:
    from packer.relax import Register

    from .operator import Operator
    from .program import FunctionWriter

_INT64, _BOOL = DataType(0, 64), DataType(6, 8)
_Rule = Callable[["FunctionWriter", "Operator"], "Register"]


def write_call(writer: FunctionWriter, operator: Operator) -> Register:
    """Write what the machine does; returns the result."""
    assert operator.flow is not None
    made = CALLS[operator.flow.call](writer, operator)
    (value,) = operator.outputs
    if operator.flow.call in ("At", "Get") and not object_of(value):
        rank, context = len(shape_of(value)), _context(writer, operator)
        writer.code.run("vm.builtin.check_tensor_info", made, rank, data_type(value), context)
    return made


def _context(writer: FunctionWriter, operator: Operator) -> str:
    assert operator.flow is not None
    return f"{writer.code.name}: {operator.flow.where} "


def _construct(writer: FunctionWriter, operator: Operator) -> Register:
    return writer.code.call("vm.builtin.make_tuple", *map(writer.owned, operator.inputs))


def _insert(writer: FunctionWriter, operator: Operator) -> Register:
    code, (sequence, value, *position) = writer.code, operator.inputs
    tuple_ = writer.argument(sequence)
    if position:
        place = code.call(NUMBER, writer.argument(position[0]), 0)
    else:
        place = code.call("dso.sequence.length", tuple_)
    context = _context(writer, operator)
    made = code.call("dso.sequence.insert", tuple_, place, writer.owned(value), context)
    code.release(place)
    return made


def _at(writer: FunctionWriter, operator: Operator) -> Register:
    sequence, *position = map(writer.argument, operator.inputs)
    place = writer.code.call(NUMBER, position[0], 0)
    made = writer.code.call("dso.sequence.at", sequence, place, _context(writer, operator))
    writer.code.release(place)
    return made


def _erase(writer: FunctionWriter, operator: Operator) -> Register:
    sequence, *position = map(writer.argument, operator.inputs)
    place = writer.code.call(NUMBER, position[0], 0) if position else -1
    return writer.code.call("dso.sequence.erase", sequence, place, _context(writer, operator))


def _scalar(
    function: str, put: str, dtype: DataType, writer: FunctionWriter, operator: Operator
) -> Register:
    tensor = writer.tensor_of((), dtype)
    found = writer.code.call(function, writer.argument(operator.inputs[0]))
    writer.code.run(put, tensor, found)
    writer.code.release(found)
    return tensor


def _get(writer: FunctionWriter, operator: Operator) -> Register:
    given = writer.argument(operator.inputs[0])
    return writer.code.call("dso.optional.get", given, _context(writer, operator))


def _same(writer: FunctionWriter, operator: Operator) -> Register:
    return writer.code.call("vm.builtin.copy", writer.owned(operator.inputs[0]))


def _nothing(writer: FunctionWriter, operator: Operator) -> Register:
    return writer.code.call("vm.builtin.null_value")


CALLS: dict[str, _Rule] = {
    "At": _at,
    "Construct": _construct,
    "Empty": _nothing,
    "Erase": _erase,
    "Get": _get,
    "Has": partial(_scalar, "dso.optional.has", SET_FLAG, _BOOL),
    "Insert": _insert,
    "Length": partial(_scalar, "dso.sequence.length", SET_NUMBER, _INT64),
    "Same": _same,
}
