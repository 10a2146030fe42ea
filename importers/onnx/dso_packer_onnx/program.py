"""The program of a model: bytecode that checks the inputs, allocates, and calls each operator.

Every set of shapes has a function; with several of them ``main`` chooses one by the shapes of its
arguments. The values of the open extents, and numbers that are calculated from them, are in slots
of the machine's shape heap. The file is long: all parts of a function share slots and registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from packer.relax import MACHINE, NOTHING, DataType, Program

from .choice import ShapeChoice, input_text
from .dtypes import data_type, dtype_name
from .extent import Extent, in_c, parameter, step_of, symbols_of
from .flow_code import write_flow
from .flow_helpers import NBYTES, NUMBER, flow_module, is_flow_helper
from .host import COPY, Numbers, helper_module
from .operator import shape_of, stored_shape
from .plan import epoch_of, epochs_of, nbytes_of, plan_memory
from .read.objects import object_of
from .state.code import StateWriter, write_choices

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Code, Register, VMExecutable

    from .operator import Operator, Shape
    from .plan import Place, Plan
    from .read.equations import Conditions
    from .state import Part, State
    from .state.code import Guard

_BYTES = DataType(1, 8)
# The codes of vm.builtin.match_shape and make_shape (TVM, builtin.h).
_EQUAL, _STORE, _ANY, _EQUAL_TO_SLOT = 0, 1, 2, 3
_NUMBER, _SLOT = 0, 1
_SLOTS = 256


class Body(NamedTuple):
    """A graph that nodes of another one run, as a function of the program."""

    function: str
    variant: Variant


class Variant(NamedTuple):
    """A model with one set of input shapes: its inputs and outputs, and the calls in order."""

    graph: ir.Graph
    operators: Sequence[Operator]
    conditions: Conditions
    named: Mapping[str, Extent] = {}  # the expressions of extents that have names (named.py)
    states: Sequence[State] = ()  # inputs and outputs that a session keeps
    bodies: Sequence[Body] = ()  # what its nodes run: branches, and the rounds of loops
    guards: Sequence[Guard] = ()  # what it expects of the session

    @property
    def arguments(self) -> list[ir.Value]:
        """The inputs that are not state."""
        states = {state.input for state in self.states}
        return [value for value in self.graph.inputs if value.name not in states]

    @property
    def results(self) -> list[ir.Value]:
        """The outputs that are not state."""
        states = {state.output for state in self.states}
        return [value for value in self.graph.outputs if value.name not in states]


def with_bodies(variant: Variant) -> Iterator[Variant]:
    """Yield a variant and its bodies, and theirs."""
    yield variant
    for body in variant.bodies:
        yield from with_bodies(body.variant)


def all_operators(variant: Variant) -> list[Operator]:
    """Return the operators of a variant and of its bodies."""
    return [operator for one in with_bodies(variant) for operator in one.operators]


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
    writers = [one for pair in pairs for one in _write(program, *pair, weights)]
    executable = program.executable()
    if choice is not None:
        executable.import_module(choice.module())
    numbers = (numbers.module() for writer in writers for numbers in writer.all_numbers)
    for module in filter(None, numbers):
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
) -> list[FunctionWriter]:
    """Write the function of a variant and the functions of its bodies."""
    writer = FunctionWriter(program, name, variant, weights, key)
    writer.write()
    bodies = (_write(program, *body, weights, [body.function]) for body in variant.bodies)
    return [writer, *(one for made in bodies for one in made)]


def function_names(name: str, count: int) -> list[str]:
    """Return the function of each variant of a program."""
    return [name] if count == 1 else [f"{name}_{index}" for index in range(1, count + 1)]


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
        self.key = [*shapes, *self.named.values(), *(one.name for one in self.operators), *key]
        self.numbers = Numbers(symbols, self._known_names(0), self.key)
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
        self._check_inputs()
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

    # ---- inputs

    def _check_inputs(self) -> None:
        """Check number, dtype and shape of each argument, and learn the open extents."""
        if self.numbers.symbols or self.epochs or any(one.flow for one in self.operators):
            self.heap = self.code.call("vm.builtin.alloc_shape_heap", MACHINE, self._most_slots())
        heap = NOTHING if self.heap is None else self.heap
        later = []
        plain = {extent for value in self.graph.inputs for extent in shape_of(value)}
        steps: dict[str, tuple[int, int, int]] = {}  # the slot of a*s + b by s, a and b
        for value in self.variant.arguments:
            if object_of(value):
                continue  # each use checks the tensors
            register, shape = self.values[value], shape_of(value)
            context = f"{self.code.name}: {input_text(value)} "
            self.code.run(
                "vm.builtin.check_tensor_info", register, len(shape), data_type(value), context
            )
            pairs: list[int] = []
            for extent in shape:
                if isinstance(extent, int):
                    pairs += [_EQUAL, extent]
                elif extent not in self.numbers.symbols:
                    step = step_of(extent)
                    if step is None or step[0] in plain or step[0] in steps:
                        pairs += [_ANY, 0]
                    else:
                        slot = self.new_slot(f"found {extent}")
                        steps[step[0]] = slot, *step[1:]
                        pairs += [_STORE, slot]
                elif (code := in_c(extent)) in self.slots:
                    pairs += [_EQUAL_TO_SLOT, self.slots[code]]
                else:
                    pairs += [_STORE, self.new_slot(code)]
            self.code.run("vm.builtin.match_shape", register, heap, len(shape), *pairs, context)
            if any(isinstance(one, str) and one not in self.numbers.symbols for one in shape):
                later.append((register, shape, context))
        for symbol, number in self.states.extents(self.numbers.symbols, self.slots):
            self.store(number, self.new_slot(in_c(symbol)), f"{symbol} ")
        for symbol, (slot, factor, rest) in steps.items():
            self.numbers.has_steps = True
            given = self.code.call(self.numbers.step_name, self.slot_value(slot), factor, rest)
            self.store(given, self.new_slot(in_c(symbol)), f"{symbol} ")
        for symbol in self.numbers.symbols:
            slot = self.slots[in_c(symbol)]
            made = self.code.call("vm.builtin.make_prim_value", heap, _SLOT, slot)
            self.symbols[symbol] = self.calculated[in_c(symbol)] = made
        for register, shape, context in later:
            pairs = []
            for extent in shape:
                is_checked = isinstance(extent, int) or extent in self.numbers.symbols
                slot = 0 if is_checked else self.slot(in_c(extent))
                pairs += [_ANY, 0] if is_checked else [_EQUAL_TO_SLOT, slot]
            self.code.run("vm.builtin.match_shape", register, heap, len(shape), *pairs, context)
        if self.numbers.symbols:
            self._check_extents(self.plan.open_nbytes)

    def _check_extents(self, nbytes: str) -> None:
        """Check what is known of the extents since the last epoch began."""
        written = [value for operator in self.operators for value in operator.outputs]
        extents = [extent for value in written for extent in shape_of(value)]
        extents += self.named.values()
        outputs = [value for value in self.graph.outputs if self._is_new(shape_of(value))]
        whole = (nbytes or "0", *(in_c(nbytes_of(value)) for value in outputs))
        conditions = self.conditions._replace(
            equations=tuple(one for one in self.conditions.equations if self._is_new(one[:2]))
        )
        new = [extent for extent in extents if self._is_new([extent])]
        self.numbers.check(self.code.name, conditions, " + ".join(whole), new)
        self.code.run(self.numbers.check_name, *self.symbols.values())

    def _is_new(self, extents: Sequence[Extent]) -> bool:
        """Return True if the extents are known since the last epoch began, and not before."""
        return epoch_of(extents, self.epochs) == self.epoch

    def define(self, symbols: Mapping[str, Register]) -> None:
        """Begin an epoch: from here on these symbols have values."""
        self.epoch += 1
        self.symbols |= symbols
        self.calculated |= {in_c(symbol): register for symbol, register in symbols.items()}
        key = [self.epoch, *self.key]
        self.numbers = Numbers([*self.symbols], self._known_names(self.epoch), key)
        self.all_numbers.append(self.numbers)
        nbytes = self.plan.born_nbytes.get(self.epoch, "")
        self._check_extents(nbytes)
        if nbytes:
            self.storages[True, self.epoch] = self._storage(self._bytes(nbytes))

    def _known_names(self, epoch: int) -> dict[str, Extent]:
        """Return the expressions of named extents that are known in an epoch."""
        return {key: one for key, one in self.named.items() if self.epochs.get(key, 0) <= epoch}

    def _most_slots(self) -> int:
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
        return self.code.call("vm.builtin.make_prim_value", heap, _SLOT, slot)

    def store(self, number: Register, slot: int, what: str = "") -> None:
        """Store a number in a slot."""
        assert self.heap is not None
        context = f"{self.code.name}: {what}"
        self.code.run("vm.builtin.match_prim_value", number, self.heap, _STORE, slot, context)

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
                    pairs += [_NUMBER, extent]
                else:
                    pairs += [_SLOT, self.slot(in_c(extent))]
            self.shapes[shape] = self.made_shape(pairs)
        return self.shapes[shape]

    def _bytes(self, code: str) -> Register:
        """Return the shape of so many bytes."""
        return self.made_shape([_SLOT, self.slot(code)])

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
        return self.tensor_in(nbytes, slot, self.made_shape([_SLOT, slot]), _BYTES)

    def tensor_in(self, nbytes: Register, slot: int, shape: Register, dtype: DataType) -> Register:
        """Allocate a tensor in so many bytes; the slot is for their number."""
        self.store(nbytes, slot)
        storage = self._storage(self.made_shape([_SLOT, slot]))
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
        arguments: list[Register] = []
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
