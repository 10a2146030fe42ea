"""The program of a model: bytecode that checks the inputs, allocates, and calls each operator.

Every set of shapes has a function; with several of them ``main`` chooses one by the shapes of its
arguments. The symbolic batch is in slot 0 of the machine's shape heap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from packer.relax import MACHINE, NOTHING, DataType, Program

from .choice import ShapeChoice, input_text
from .dtypes import data_type
from .host import COPY, PRODUCT, helper_module
from .operator import shape_of, stored_shape
from .plan import is_scaled, nbytes_of, plan_memory

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Code, Register, VMExecutable

    from .operator import Operator, Shape
    from .plan import Place, Plan

_BYTES = DataType(1, 8)
# The codes of vm.builtin.match_shape and make_shape (TVM, builtin.h).
_EQUAL, _STORE, _EQUAL_TO_SLOT = 0, 1, 3
_NUMBER, _SLOT = 0, 1
_BATCH = 0  # the slot


class Variant(NamedTuple):
    """A model with one set of input shapes: its inputs and outputs, and the calls in order."""

    graph: ir.Graph
    operators: Sequence[Operator]


def make_program(
    variants: Sequence[Variant], weights: Mapping[ir.Value, str], name: str = "main"
) -> VMExecutable:
    """Make the bytecode of a model.

    Parameters
    ----------
    variants : sequence of Variant
        One for each set of shapes; all have the same names and data types of inputs.
    weights : mapping of ir.Value to str
        The name by which ``dso.weight`` finds each weight that an operator reads.
    name : str
        The function to call. With several variants the others are ``<name>_1`` and so on.

    Returns
    -------
    VMExecutable
        It imports the C functions that it calls itself, but not the operators and the weights.
    """
    program = Program()
    if len(variants) == 1:
        _FunctionWriter(program, name, variants[0], weights).write()
        executable = program.executable()
    else:
        names = function_names(name, len(variants))
        choice = ShapeChoice(name, [variant.graph for variant in variants])
        choice.write(program, names)
        for function, variant in zip(names, variants, strict=True):
            _FunctionWriter(program, function, variant, weights).write()
        executable = program.executable()
        executable.import_module(choice.module())
    if any(function.name in (COPY, PRODUCT) for function in executable.functions):
        executable.import_module(helper_module())
    return executable


def function_names(name: str, count: int) -> list[str]:
    """Return the function of each variant of a program."""
    return [name] if count == 1 else [f"{name}_{index}" for index in range(1, count + 1)]


class _FunctionWriter:
    """Writes the function of one variant."""

    def __init__(
        self, program: Program, name: str, variant: Variant, weights: Mapping[ir.Value, str]
    ) -> None:
        self.graph, self.operators = variant
        self.weights = weights
        self.code: Code = program.function(name, [str(value.name) for value in self.graph.inputs])
        self.plan: Plan = plan_memory(self.operators, self.graph.outputs)
        self.values: dict[ir.Value, Register] = dict(
            zip(self.graph.inputs, self.code.params, strict=True)
        )
        self.heap: Register | None = None
        self.batch: Register | None = None
        self.storages: dict[bool, Register] = {}
        self.shapes: dict[tuple[int | str, ...], Register] = {}
        self.products: dict[int, Register] = {}

    def write(self) -> None:
        self._check_inputs()
        self._allocate_storages()
        direct = self._direct_outputs()
        for value, output in direct.items():
            self.values[value] = self._own_tensor(output)
        for step, operator in enumerate(self.operators):
            if operator.code:
                self._call(step, operator)
        results = [self._result(output, direct) for output in self.graph.outputs]
        if len(results) > 1:
            self.code.ret(self.code.call("vm.builtin.make_tuple", *results))
        else:
            self.code.ret(results[0])

    # ---- inputs

    def _check_inputs(self) -> None:
        """Check number, dtype and shape of each argument, and learn the batch."""
        values = (*self.graph.inputs, *self.graph.outputs)
        written = [value for operator in self.operators for value in operator.outputs]
        if any(is_scaled(value) for value in (*values, *written)):
            self.heap = self.code.call("vm.builtin.alloc_shape_heap", MACHINE, 1)
        is_known = False
        for value in self.graph.inputs:
            register, shape = self.values[value], shape_of(value)
            context = f"{self.code.name}: {input_text(value)} "
            self.code.run(
                "vm.builtin.check_tensor_info", register, len(shape), data_type(value), context
            )
            pairs: list[int] = []
            for extent in shape:
                if isinstance(extent, int):
                    pairs += [_EQUAL, extent]
                else:
                    pairs += [_EQUAL_TO_SLOT if is_known else _STORE, _BATCH]
                    is_known = True
            heap = NOTHING if self.heap is None else self.heap
            self.code.run("vm.builtin.match_shape", register, heap, len(shape), *pairs, context)
        if self.heap is not None:
            self.batch = self.code.call("vm.builtin.make_prim_value", self.heap, _SLOT, _BATCH)

    # ---- memory

    def _allocate_storages(self) -> None:
        places = (*self.plan.places.values(), *self.plan.workspaces.values())
        scaled = [place.is_scaled for place in places]
        if not all(scaled):
            self.storages[False] = self._storage((max(self.plan.nbytes, 1),))
        if any(scaled):
            self.storages[True] = self._storage(self._shape(("batch", self.plan.batch_nbytes)))

    def _storage(self, shape: Register | tuple[int, ...]) -> Register:
        return self.code.call("vm.builtin.alloc_storage", MACHINE, shape, 0, _BYTES, "global")

    def _shape(self, shape: Shape) -> Register | tuple[int, ...]:
        """Return a shape as an argument; a symbolic one is made once per call of the function."""
        if all(isinstance(extent, int) for extent in shape):
            return tuple(int(extent) for extent in shape)
        if shape not in self.shapes:
            assert self.heap is not None
            pairs: list[int] = []
            for extent in shape:
                pairs += [_NUMBER, extent] if isinstance(extent, int) else [_SLOT, _BATCH]
            made = self.code.call("vm.builtin.make_shape", self.heap, len(shape), *pairs)
            self.shapes[shape] = made
        return self.shapes[shape]

    def _times_batch(self, number: int) -> Register | int:
        """Return a number times the batch; each product is made once."""
        if number == 0:
            return 0
        if number not in self.products:
            assert self.batch is not None
            self.products[number] = self.code.call(PRODUCT, self.batch, number)
        return self.products[number]

    def _tensor(self, place: Place, shape: Shape, dtype: DataType) -> Register:
        storage = self.storages[place.is_scaled]
        offset = self._times_batch(place.offset) if place.is_scaled else place.offset
        return self.code.call("vm.builtin.alloc_tensor", storage, offset, self._shape(shape), dtype)

    def _own_tensor(self, value: ir.Value) -> Register:
        """Allocate memory for one output."""
        shape = stored_shape(value)
        nbytes: Register | tuple[int, ...] = (nbytes_of(value),)
        if is_scaled(value):
            nbytes = self._shape(("batch", nbytes_of(value)))
        storage = self._storage(nbytes)
        tensor = self.code.call(
            "vm.builtin.alloc_tensor", storage, 0, self._shape(shape), data_type(value)
        )
        self.code.release(storage)
        return tensor

    # ---- operators

    def _call(self, step: int, operator: Operator) -> None:
        arguments: list[Register] = []
        temporary: list[Register] = []
        if operator.takes_batch:
            assert self.batch is not None
            arguments.append(self.batch)
        for value in operator.inputs:
            source = self.plan.source(value)
            if source in self.weights:
                temporary.append(self._weight(source))
                arguments.append(temporary[-1])
            else:
                arguments.append(self.values[source])
        for value in operator.outputs:
            if value not in self.values:
                place = self.plan.places[value]
                self.values[value] = self._tensor(place, stored_shape(value), data_type(value))
            arguments.append(self.values[value])
        if operator.workspace:
            place = self.plan.workspaces[step]
            batch = ("batch",) if place.is_scaled else ()
            temporary.append(self._tensor(place, (*batch, operator.workspace), _BYTES))
            arguments.append(temporary[-1])
        self.code.run(operator.name, *arguments)
        self._release(step, operator, temporary)

    def _release(self, step: int, operator: Operator, temporary: list[Register]) -> None:
        """Reuse the registers of values that no later operator needs."""
        used = dict.fromkeys(map(self.plan.source, (*operator.inputs, *operator.outputs)))
        last_uses, places = self.plan.last_uses, self.plan.places
        ended = [value for value in used if value in places and last_uses[value] == step]
        for register in (*temporary, *map(self.values.pop, ended)):
            self.code.release(register)

    def _weight(self, value: ir.Value) -> Register:
        return self.code.call("dso.weight", self.weights[value])

    # ---- outputs

    def _direct_outputs(self) -> dict[ir.Value, ir.Value]:
        """Return the values that are written where an output is, each with that output."""
        written = {value for one in self.operators if one.code for value in one.outputs}
        direct: dict[ir.Value, ir.Value] = {}
        for output in (*(o for o in self.graph.outputs if o in written), *self.graph.outputs):
            source = self.plan.source(output)
            if source in written:
                direct.setdefault(source, output)
        return direct

    def _result(self, output: ir.Value, direct: dict[ir.Value, ir.Value]) -> Register:
        """Return the tensor of an output; one that is elsewhere already is copied."""
        source = self.plan.source(output)
        if direct.get(source) is output and source in self.values:
            del direct[source]  # an output that occurs twice is copied
            return self.values[source]
        tensor = self._own_tensor(output)
        nbytes = nbytes_of(output)
        count = self._times_batch(nbytes) if is_scaled(output) else nbytes
        origin = self._weight(source) if source in self.weights else self.values[source]
        self.code.run(COPY, origin, tensor, count)
        return tensor
