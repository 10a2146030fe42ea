"""The program of a model: bytecode that checks the inputs, allocates, and calls each operator.

Every set of shapes has a function; with several of them ``main`` chooses one by the shapes of its
arguments. The values of the open extents, and numbers that are calculated from them, are in slots
of the machine's shape heap. The file is long: all parts of a function share slots and registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from packer.relax import MACHINE, NOTHING, DataType, Program

from .choice import ShapeChoice
from .dtypes import data_type, dtype_name
from .extent import Extent, in_c, parameter, symbols_of
from .flow_code import write_flow
from .flow_helpers import NBYTES, NUMBER, flow_module, is_flow_helper
from .host import COPY, Numbers, helper_module, numbers_module
from .inputs import check_extents, check_inputs
from .operator import shape_of, stored_shape
from .plan import epoch_of, epochs_of, nbytes_of, plan_memory
from .read.objects import object_of
from .shape_codes import FIXED, SLOT, STORE
from .state.code import StateWriter, write_choices
from .variant import function_names

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Code, Register, VMExecutable

    from .operator import Operator, Shape
    from .plan import Place, Plan
    from .state import Part
    from .variant import Variant

_BYTES = DataType(1, 8)
_SLOTS = 256


def make_program(
    variants: Sequence[Variant],
    weights: Mapping[ir.Value, str],
    name: str = "main",
    parts: Sequence[Part] = (),
) -> VMExecutable:
    """Make the bytecode of a model.

    Parameters
    ----------
    variants : sequence of Variant
        One for each set of shapes; all have the same names and data types of inputs. Or one for
        each of `parts`.
    weights : mapping of ir.Value to str
        The name by which ``dso.weight`` finds each weight that an operator reads.
    name : str
        The function to call. With several variants the others are ``<name>_1`` and so on.
    parts : sequence of Part
        The function of each variant, of a model with several graphs.

    Returns
    -------
    VMExecutable
        It imports the C functions that it calls itself, but not the operators and the weights.
    """
    program = Program()
    program.number_of("dso.any_alignment")  # in the table of functions it says so of all tensors
    names = [part.name for part in parts] or function_names(name, len(variants))
    choice = None
    if len(parts) > 1:
        write_choices(program, parts, variants)
    elif len(variants) > 1:
        choice = ShapeChoice(name, [variant.graph for variant in variants])
        choice.write(program, names)
    pairs = zip(names, variants, strict=True)
    numbers = [_write(program, *pair, weights) for pair in pairs]
    executable = program.executable()
    if choice is not None:
        executable.import_module(choice.module())
    for module in filter(None, map(numbers_module, numbers)):
        executable.import_module(module)
    if any(function.name == COPY for function in executable.functions):
        executable.import_module(helper_module())
    if any(is_flow_helper(function.name) for function in executable.functions):
        executable.import_module(flow_module())
    return executable


def _write(
    program: Program,
    name: str,
    variant: Variant,
    weights: Mapping[ir.Value, str],
    key: Sequence[object] = (),
) -> list[Numbers]:
    """Write the function of a variant and the functions of its bodies."""
    writer = FunctionWriter(program, name, variant, weights, key)
    writer.write()
    outer = writer.all_numbers[0].name
    bodies = (_write(program, *body, weights, [body.function, outer]) for body in variant.bodies)
    return [*writer.all_numbers, *(one for made in bodies for one in made)]


def _key_of(variant: Variant) -> list[object]:
    """Return what the numbers of a variant, and of its bodies, depend on."""
    operators = variant.operators
    key: list[object] = [*map(shape_of, variant.graph.inputs), *variant.named.values()]
    key += [one.name for one in operators]
    # The names of branches and loops do not say what they give.
    key += [(one.defines, *map(shape_of, one.outputs)) for one in operators if one.flow]
    return key + [(body.function, *_key_of(body.variant)) for body in variant.bodies]


class FunctionWriter:
    """Writes the function of one variant."""

    def __init__(
        self,
        program: Program,
        name: str,
        variant: Variant,
        weights: Mapping[ir.Value, str],
        key: Sequence[object] = (),
    ) -> None:
        self.graph, self.operators, self.conditions, self.named, *_ = variant
        self.variant, self.weights = variant, weights
        self.code: Code = program.function(name, [str(value.name) for value in variant.arguments])
        self.plan: Plan = plan_memory(self.operators, self.graph.outputs, self.named)
        self.values: dict[ir.Value, Register] = dict(
            zip(variant.arguments, self.code.params, strict=True)
        )
        shapes = [shape_of(value) for value in self.graph.inputs]
        symbols = symbols_of(extent for shape in shapes for extent in shape)
        self.epochs = epochs_of(self.operators, self.named)
        self.key = [*_key_of(variant), *key]
        known = () if key else None
        self.numbers = Numbers(symbols, self._known_names(0), self.key, known)
        self.all_numbers = [self.numbers]
        self.epoch = 0
        self.heap: Register | None = None
        self.symbols: dict[str, Register] = {}
        self.storages: dict[tuple[bool, int], Register] = {}
        self.direct: dict[ir.Value, ir.Value] = {}
        self.made: set[ir.Value] = set()  # results of branches and loops
        self.kept = {self.plan.source(value) for value in self.graph.outputs}
        self.shapes: dict[tuple[int | str, ...], Register] = {}
        self.calculated: dict[str, Register] = {}  # by their expressions of C
        self.slots: dict[str, int] = {}  # of the heap, by their expressions of C
        self.states = StateWriter(self.code, variant)

    def write(self) -> None:
        self.states.expect(self.variant.guards)
        check_inputs(self)
        self.states.open(self._state, self.values)
        self._allocate_storages()
        self.direct = self._direct_outputs()
        for value, output in self.direct.items():
            if value not in self.values and not epoch_of(shape_of(output), self.epochs):
                self.values[value] = self._own_tensor(output)
        for step, operator in enumerate(self.operators):
            if operator.flow:
                write_flow(self, operator)
                self._release(step, operator, [])
            elif operator.code:
                self._call(step, operator)
        made = [(output, self._result(output, self.direct)) for output in self.graph.outputs]
        results = [result for output, result in made if not self.states.is_state(output)]
        if len(results) != 1:
            self.code.ret(self.code.call("vm.builtin.make_tuple", *results))
        else:
            self.code.ret(results[0])

    # ---- extents

    def is_new(self, extents: Sequence[Extent]) -> bool:
        """Return True if the extents are known since the last epoch began, and not before."""
        return epoch_of(extents, self.epochs) == self.epoch

    def define(self, symbols: Mapping[str, Register]) -> None:
        """Begin an epoch: from here on these symbols have values."""
        self.epoch += 1
        known = [*self.symbols]
        self.symbols |= symbols
        self.calculated |= {in_c(symbol): register for symbol, register in symbols.items()}
        key = [self.epoch, *self.key]
        self.numbers = Numbers([*self.symbols], self._known_names(self.epoch), key, known)
        self.all_numbers.append(self.numbers)
        nbytes = self.plan.born_nbytes.get(self.epoch, "")
        check_extents(self, nbytes)
        if nbytes:
            self.storages[True, self.epoch] = self._storage(self._bytes(nbytes))

    def _known_names(self, epoch: int) -> dict[str, Extent]:
        """Return the expressions of named extents that are known in an epoch."""
        return {key: one for key, one in self.named.items() if self.epochs.get(key, 0) <= epoch}

    def most_slots(self) -> int:
        """Return how many slots of the heap suffice; equal models keep the number."""
        values = [*self.graph.inputs, *(v for one in self.operators for v in one.outputs)]
        extents = {e for v in values for e in (*shape_of(v), *stored_shape(v))}
        made = (v for one in self.operators if one.flow for v in one.outputs)
        count = len(extents) + len(self.graph.outputs) + 2 * len(self.epochs) + 64
        return max(_SLOTS, count + sum(4 + len(shape_of(value)) for value in made))

    # ---- numbers

    def new_slot(self, code: str) -> int:
        """Return the slot of an expression of C, which has none."""
        return self.slots.setdefault(code, len(self.slots))

    def _number(self, code: str) -> Register:
        """Return the value of an expression of C; each is calculated once in a call."""
        if code not in self.calculated:
            arguments = (self.symbols[symbol] for symbol in self.numbers.symbols)
            number = self.numbers.index(code)
            self.calculated[code] = self.code.call(self.numbers.name, number, *arguments)
        return self.calculated[code]

    def slot(self, code: str) -> int:
        """Return the slot that has the value of an expression of C."""
        if code not in self.slots:
            number = self._number(code)
            self.store(number, self.new_slot(code), f"{code} ")
        return self.slots[code]

    def slot_value(self, slot: int) -> Register:
        """Return the number of a slot."""
        heap = NOTHING if self.heap is None else self.heap
        return self.code.call("vm.builtin.make_prim_value", heap, SLOT, slot)

    def store(self, number: Register, slot: int, what: str = "") -> None:
        """Store a number in a slot."""
        assert self.heap is not None
        context = f"{self.code.name}: {what}"
        self.code.run("vm.builtin.match_prim_value", number, self.heap, STORE, slot, context)

    def match(self, register: Register, value: ir.Value, pairs: Sequence[int]) -> None:
        """Match the shape of a tensor with pairs of a code and an operand."""
        heap = NOTHING if self.heap is None else self.heap
        context = f"{self.code.name}: {value.name!r} of {dtype_name(value)} "
        count = len(pairs) // 2
        self.code.run("vm.builtin.match_shape", register, heap, count, *pairs, context)

    # ---- memory

    def _allocate_storages(self) -> None:
        places = (*self.plan.places.values(), *self.plan.workspaces.values())
        if not all(place.is_open for place in places):
            self.storages[False, 0] = self._storage((max(self.plan.nbytes, 1),))
        if any(place.is_open and not place.epoch for place in places):
            self.storages[True, 0] = self._storage(self._bytes(self.plan.open_nbytes))

    def _storage(self, shape: Register | tuple[int, ...]) -> Register:
        return self.code.call("vm.builtin.alloc_storage", MACHINE, shape, 0, _BYTES, "global")

    def _shape(self, shape: Shape) -> Register | tuple[int, ...]:
        """Return a shape as an argument; an open one is made once per call of the function."""
        if all(isinstance(extent, int) for extent in shape):
            return tuple(int(extent) for extent in shape)
        if shape not in self.shapes:
            pairs: list[int] = []
            for extent in shape:
                if isinstance(extent, int):
                    pairs += [FIXED, extent]
                else:
                    pairs += [SLOT, self.slot(in_c(extent))]
            self.shapes[shape] = self.made_shape(pairs)
        return self.shapes[shape]

    def _bytes(self, code: str) -> Register:
        """Return the shape of so many bytes."""
        return self.made_shape([SLOT, self.slot(code)])

    def made_shape(self, pairs: list[int]) -> Register:
        assert self.heap is not None
        return self.code.call("vm.builtin.make_shape", self.heap, len(pairs) // 2, *pairs)

    def _tensor(self, place: Place, shape: Shape, dtype: DataType) -> Register:
        storage, offset = self.storages[place.is_open, place.epoch], place.offset
        at = offset if isinstance(offset, int) else 0 if offset == "0" else self._number(offset)
        return self.code.call("vm.builtin.alloc_tensor", storage, at, self._shape(shape), dtype)

    def tensor_of(self, shape: tuple[int, ...], dtype: DataType) -> Register:
        """Allocate a tensor of fixed shape."""
        storage = self._storage((max(prod(shape) * dtype.bits // 8, 1),))
        tensor = self.code.call("vm.builtin.alloc_tensor", storage, 0, shape, dtype)
        self.code.release(storage)
        return tensor

    def bytes_of(self, nbytes: Register, slot: int) -> Register:
        """Allocate so many bytes; the slot is for their number."""
        self.store(nbytes, slot)
        return self.tensor_in(nbytes, slot, self.made_shape([SLOT, slot]), _BYTES)

    def tensor_in(self, nbytes: Register, slot: int, shape: Register, dtype: DataType) -> Register:
        """Allocate a tensor in so many bytes; the slot is for their number."""
        self.store(nbytes, slot)
        storage = self._storage(self.made_shape([SLOT, slot]))
        tensor = self.code.call("vm.builtin.alloc_tensor", storage, 0, shape, dtype)
        self.code.release(storage)
        return tensor

    def copied(self, register: Register, value: ir.Value) -> Register:
        """Copy a tensor to separate memory."""
        shape = self.code.call("vm.builtin.shape_of", register)
        nbytes = self.code.call(NBYTES, register)
        slot = self.new_slot(f"bytes of {value.name}")
        tensor = self.tensor_in(nbytes, slot, shape, data_type(value))
        self.code.run(COPY, register, tensor, nbytes)
        for one in (shape, nbytes):
            self.code.release(one)
        return tensor

    def owned(self, value: ir.Value) -> Register:
        """Return a tensor in separate memory; a sequence or an optional is one already."""
        register = self.argument(value)
        if object_of(value) or self.plan.source(value) in self.made:
            return register
        return self.copied(register, value)

    def _own_tensor(self, value: ir.Value) -> Register:
        """Allocate memory for one output."""
        if self.states.is_state(value):
            kind = self.states.kind(value)
            return self._state(kind, self.states.outputs[str(value.name)], value)
        shape, nbytes = stored_shape(value), nbytes_of(value)
        size = (nbytes,) if isinstance(nbytes, int) else self._bytes(in_c(nbytes))
        storage = self._storage(size)
        tensor = self.code.call(
            "vm.builtin.alloc_tensor", storage, 0, self._shape(shape), data_type(value)
        )
        self.code.release(storage)
        return tensor

    def _state(self, kind: str, index: int, value: ir.Value) -> Register:
        """Return the tensor of a state, or memory for it."""
        shape = self._shape(stored_shape(value))
        return self.code.call(f"dso.state.{kind}", index, shape, data_type(value))

    # ---- operators

    def argument(self, value: ir.Value) -> Register:
        """Return a tensor of the shape of a value, for a function of bytecode."""
        source = self.plan.source(value)
        register = self._weight(source) if source in self.weights else self.values[source]
        if stored_shape(source) == shape_of(value):
            return register
        return self.code.call("vm.builtin.reshape", register, self._shape(shape_of(value)))

    def _call(self, step: int, operator: Operator) -> None:
        arguments: list[Register | int] = [*operator.numbers]
        temporary: list[Register] = []
        arguments += [self._number(parameter(symbol)) for symbol in operator.symbols]
        for value in operator.inputs:
            source = self.plan.source(value)
            if source in self.weights:
                temporary.append(self._weight(source))
                arguments.append(temporary[-1])
            else:
                arguments.append(self.values[source])
        for value in operator.outputs:
            if value not in self.values and value not in self.plan.places:
                self.values[value] = self._own_tensor(self.direct.get(value, value))
            if value not in self.values:
                place = self.plan.places[value]
                self.values[value] = self._tensor(place, stored_shape(value), data_type(value))
            arguments.append(self.values[value])
        if operator.workspace:
            place = self.plan.workspaces[step]
            temporary.append(self._tensor(place, (operator.workspace,), _BYTES))
            arguments.append(temporary[-1])
        self.code.run(operator.name, *arguments)
        if operator.defines:
            numbers = self.values[operator.outputs[0]]
            found = enumerate(operator.defines)
            self.define({name: self.code.call(NUMBER, numbers, i) for i, name in found})
        self._release(step, operator, temporary)

    def _release(self, step: int, operator: Operator, temporary: list[Register]) -> None:
        """Reuse the registers of values that no later operator needs."""
        used = dict.fromkeys(map(self.plan.source, (*operator.inputs, *operator.outputs)))
        last_uses, places = self.plan.last_uses, self.plan.places
        ended = [
            value
            for value in used
            if (value in places or value in self.made - self.kept) and last_uses[value] == step
        ]
        for register in (*temporary, *map(self.values.pop, ended)):
            self.code.release(register)

    def _weight(self, value: ir.Value) -> Register:
        return self.code.call("dso.weight", self.weights[value])

    # ---- outputs

    def _direct_outputs(self) -> dict[ir.Value, ir.Value]:
        """Return the values that are written where an output is, each with that output."""
        written: dict[ir.Value, int] = {}  # the epoch in which each value is written
        epoch = 0
        for one in self.operators:
            written |= dict.fromkeys(one.outputs if one.code else (), epoch)
            epoch += bool(one.defines)
        direct: dict[ir.Value, ir.Value] = {}
        for output in (*(o for o in self.graph.outputs if o in written), *self.graph.outputs):
            source = self.plan.source(output)
            known = written.get(source, -1)
            if known >= epoch_of(shape_of(output), self.epochs):
                direct.setdefault(source, output)
        return direct

    def _result(self, output: ir.Value, direct: dict[ir.Value, ir.Value]) -> Register:
        """Return the tensor of an output; one that is elsewhere already is copied."""
        source = self.plan.source(output)
        if object_of(output):
            return self.values[source]
        if direct.get(source) is output and source in self.values:
            del direct[source]  # an output that occurs twice is copied
            return self.values[source]
        tensor = self._own_tensor(output)
        nbytes = nbytes_of(output)
        count = nbytes if isinstance(nbytes, int) else self._number(in_c(nbytes))
        origin = self._weight(source) if source in self.weights else self.values[source]
        self.code.run(COPY, origin, tensor, count)
        return tensor
