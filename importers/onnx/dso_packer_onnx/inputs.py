"""The bytecode that checks the arguments of a function, and learns the open extents from them.

The shape of an argument is matched three times at most: an extent that is a symbol is stored in a
slot of the heap, or compared with its slot; a symbol that no axis has, as s of 2*s, is calculated
from the axis; other expressions are compared when all symbols are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from packer.relax import MACHINE, NOTHING

from .choice import input_text
from .dtypes import data_type
from .extent import Extent, in_c, step_of
from .operator import shape_of
from .plan import nbytes_of
from .read.objects import object_of
from .shape_codes import ANY, EQUAL, EQUAL_TO_SLOT, STORE

if TYPE_CHECKING:
    from packer.relax import Register

    from .operator import Shape
    from .program import FunctionWriter

_Step = tuple[int, int, int]  # the slot of a*s + b, a and b


class _Argument(NamedTuple):
    register: Register
    shape: Shape
    context: str  # the first words of messages

    def match(self, writer: FunctionWriter, pairs: Sequence[int]) -> None:
        heap = NOTHING if writer.heap is None else writer.heap
        writer.code.run(
            "vm.builtin.match_shape", self.register, heap, len(self.shape), *pairs, self.context
        )


def check_inputs(writer: FunctionWriter) -> None:
    """Check number, dtype and shape of each argument, and learn the open extents."""
    symbols, code = writer.numbers.symbols, writer.code
    if symbols or writer.epochs or any(one.flow for one in writer.operators):
        writer.heap = code.call("vm.builtin.alloc_shape_heap", MACHINE, writer.most_slots())
    plain = {extent for value in writer.graph.inputs for extent in shape_of(value)}
    steps: dict[str, _Step] = {}  # by s
    arguments = []
    for value in writer.variant.arguments:
        if object_of(value):
            continue  # each use checks the tensors
        context = f"{code.name}: {input_text(value)} "
        one = _Argument(writer.values[value], shape_of(value), context)
        info = one.register, len(one.shape), data_type(value), context
        code.run("vm.builtin.check_tensor_info", *info)
        one.match(writer, _first_pairs(writer, one.shape, plain, steps))
        arguments.append(one)
    _learn(writer, steps)
    for one in arguments:
        if any(isinstance(extent, str) and extent not in symbols for extent in one.shape):
            one.match(writer, _later_pairs(writer, one.shape))
    if symbols:
        check_extents(writer, writer.plan.open_nbytes)


def _first_pairs(
    writer: FunctionWriter, shape: Shape, plain: set[Extent], steps: dict[str, _Step]
) -> list[int]:
    """Return codes and operands for the extents that are known now, or that are learned."""
    pairs: list[int] = []
    for extent in shape:
        if isinstance(extent, int):
            pairs += [EQUAL, extent]
        elif extent not in writer.numbers.symbols:
            step = step_of(extent)
            if step is None or step[0] in plain or step[0] in steps:
                pairs += [ANY, 0]
            else:
                slot = writer.new_slot(f"found {extent}")
                steps[step[0]] = slot, *step[1:]
                pairs += [STORE, slot]
        elif (code := in_c(extent)) in writer.slots:
            pairs += [EQUAL_TO_SLOT, writer.slots[code]]
        else:
            pairs += [STORE, writer.new_slot(code)]
    return pairs


def _learn(writer: FunctionWriter, steps: dict[str, _Step]) -> None:
    """Put the symbols of the inputs into slots and registers."""
    numbers, code = writer.numbers, writer.code
    for symbol, number in writer.states.extents(numbers.symbols, writer.slots):
        writer.store(number, writer.new_slot(in_c(symbol)), f"{symbol} ")
    for symbol, (slot, factor, rest) in steps.items():
        numbers.has_steps = True
        given = code.call(numbers.step_name, writer.slot_value(slot), factor, rest)
        writer.store(given, writer.new_slot(in_c(symbol)), f"{symbol} ")
    for symbol in numbers.symbols:
        made = writer.slot_value(writer.slots[in_c(symbol)])
        writer.symbols[symbol] = writer.calculated[in_c(symbol)] = made


def _later_pairs(writer: FunctionWriter, shape: Shape) -> list[int]:
    """Return codes and operands for the expressions of a shape."""
    pairs = []
    for extent in shape:
        is_checked = isinstance(extent, int) or extent in writer.numbers.symbols
        slot = 0 if is_checked else writer.slot(in_c(extent))
        pairs += [ANY, 0] if is_checked else [EQUAL_TO_SLOT, slot]
    return pairs


def check_extents(writer: FunctionWriter, nbytes: str) -> None:
    """Check what is known of the extents since the last epoch began."""
    written = [value for operator in writer.operators for value in operator.outputs]
    extents = [extent for value in written for extent in shape_of(value)]
    extents += writer.named.values()
    outputs = [value for value in writer.graph.outputs if writer.is_new(shape_of(value))]
    whole = (nbytes or "0", *(in_c(nbytes_of(value)) for value in outputs))
    equations = (one for one in writer.conditions.equations if writer.is_new(one[:2]))
    conditions = writer.conditions._replace(equations=tuple(equations))
    new: list[Extent] = [extent for extent in extents if writer.is_new([extent])]
    writer.numbers.check(writer.code.name, conditions, " + ".join(whole), new)
    writer.code.run(writer.numbers.check_name, *writer.symbols.values())
