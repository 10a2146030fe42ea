"""The bodies of branches and loops as models: what they capture are their inputs.

The axes of the inputs that have equal extents in all samples have one symbol. Each call of a body
checks the extents of its arguments, as a call of the model does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..extent import Extent, symbols_of, value_at
from ..operator import shape_of
from .births import Births
from .equations import put_conditions
from .extents import put_extents
from .objects import ObjectType, object_of, put_object
from .tested import Tested, put_tested
from .types import dtype_name, graphs_of, substitute
from .words import shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes, Seed

Sizes = tuple[int, ...]  # of an extent, for each sample


class Result(NamedTuple):
    """The type of what a body returns; extents in the symbols of the body."""

    dtype: int
    extents: tuple[Extent, ...]
    object: ObjectType | None = None  # of a sequence or an optional

    def __str__(self) -> str:
        if self.object is not None:
            return f"{self.object}{' of any rank' if self.object.is_any_rank else ''}"
        return f"{dtype_name(self.dtype)} {shape_text(self.extents)}"


class Body(NamedTuple):
    """A body with shapes."""

    model: ir.Model
    captured: tuple[ir.Value, ...]  # the outer values that are its last inputs
    results: tuple[Result, ...]
    samples: tuple[dict[str, int], ...]  # the values of its symbols in the samples
    places: Mapping[str, tuple[ir.Value, int]]  # an axis of an outer value for each symbol
    always_goes_on: bool  # of a loop: whether its condition is true after each round
    raises: str = ""  # the error of each call of it

    def sizes(self, index: int, axis: int) -> Sizes:
        """Return the extent of a result for each sample."""
        extent = self.results[index].extents[axis]
        return tuple(value_at(extent, sample) or 0 for sample in self.samples)

    def known(self, index: int, axis: int) -> Extent | None:
        """Return the extent of a result in symbols of `places`; None if the body decides it."""
        extent = self.results[index].extents[axis]
        return extent if all(one in self.places for one in symbols_of([extent])) else None


def bodies_of(node: ir.Node) -> tuple[Body, ...]:
    """Return the bodies of a node of `flow`."""
    flow = node.meta.get("flow")
    return flow.bodies if flow else ()


def make_body(
    node: ir.Node,
    graph: ir.Graph,
    carried: Sequence[ir.Value],
    captured: Sequence[ir.Value],
    passes: Passes,
    symbols: Symbols,
    changing: Mapping[tuple[int, int], str] | None = None,
    objects: Mapping[int, ObjectType] | None = None,
    fixed: Tested | None = None,
) -> Body:
    """Make the model of a body, with shapes.

    Parameters
    ----------
    graph : ir.Graph
        A subgraph of the node; it is not changed.
    carried : sequence of ir.Value
        The first values of its inputs after the round and the condition.
    symbols : Symbols
        Of all bodies of the node.
    changing : mapping
        The symbols of the axes of carried values that rounds change.
    objects : mapping
        The types of carried values that are sequences or optionals.
    fixed : Tested, optional
        An extent that is a number in the body.
    """
    import onnx_ir as ir

    from .shapes import shape_body

    assert node.graph is not None
    made = graph.clone(allow_outer_scope_values=True)
    made.opset_imports.update(node.graph.opset_imports)
    used = [value for value in captured if _uses(made, value)]
    inputs: dict[str, tuple[Extent, ...]] = {}
    for index, inner in enumerate(made.inputs):
        if index < len(made.inputs) - len(carried):  # the number of the round, and the condition
            inputs[str(inner.name)] = ()
            inner.shape = ir.Shape([])
            continue
        number = index - (len(made.inputs) - len(carried))
        outer = carried[number]
        open_axes = {axis: name for (i, axis), name in (changing or {}).items() if i == number}
        inputs[str(inner.name)] = symbols.shape(outer, open_axes, None)
        inner.type = ir.TensorType(ir.DataType(passes.all[0].types[outer].dtype))
        if objects and number in objects:
            put_object(inner, objects[number])
    arguments, seeds = [], {}
    names = {value.name for one in made.all_nodes() for value in one.outputs}
    names |= {*made.initializers, *inputs}
    for value in used:
        constant = _constant(value, passes)
        dtype = ir.DataType(passes.all[0].types[value].dtype)
        name = str(value.name)
        while name in names:
            name += "_"
        names.add(name)
        inner = ir.Value(name=name, type=ir.TensorType(dtype))
        if (type_ := object_of(value)) is not None:
            put_object(inner, type_)
        put_tested(inner, value, passes)
        if constant is not None:
            inner.const_value, inner.shape = constant, ir.Shape(constant.shape.numpy())
            made.register_initializer(inner)
        else:
            made.inputs.append(inner)
            inputs[name] = symbols.shape(value, {}, fixed)
            arguments.append(value)
            if all(value in one.constants for one in passes.all):
                seeds[name] = _seed(value, passes, fixed)
        substitute(made, value, inner)
    model = ir.Model(made, ir_version=10)
    model.meta["source"] = passes.source
    _separate(made)
    samples = [dict(sample) for sample in symbols.samples]
    shaped, inner_passes = shape_body(
        model, inputs, samples, passes, seeds, [*(changing or {}).values()]
    )
    results = tuple(Result(int(v.dtype), shape_of(v), object_of(v)) for v in shaped.meta["results"])
    goes_on = _goes_on(shaped.meta["results"][0], shaped.graph, inner_passes)
    return Body(
        shaped, tuple(arguments), results, tuple(inner_passes.samples), symbols.places, goes_on
    )


def raising_body(like: Body, text: str, source: str) -> Body:
    """Return a body without inputs whose calls raise an error, with the results of another."""
    import onnx_ir as ir

    attribute = ir.AttrString("text", text)
    node = ir.Node("dso", "Raise", [], [attribute], num_outputs=len(like.results))
    for index, (value, result) in enumerate(zip(node.outputs, like.results, strict=True)):
        value.name, value.type = f"never{index}", ir.TensorType(ir.DataType(result.dtype))
        value.shape = ir.Shape([one if isinstance(one, int) else 0 for one in result.extents])
    graph = ir.Graph([], node.outputs, nodes=[node], name="raises", opset_imports={"": 23})
    model = ir.Model(graph, ir_version=10)
    model.meta["source"] = source
    put_extents(model, Births([], 0, can_differ=False))
    put_conditions(model, {}, ())
    return like._replace(model=model, captured=(), always_goes_on=False, raises=text)


def _seed(value: ir.Value, passes: Passes, fixed: Tested | None) -> Seed:
    """Return the elements of a small value; an extent among them may be a number."""
    import numpy

    from .passes import Seed

    arrays = [one.constants[value] for one in passes.all]
    is_open = passes.open.elements.get(value, numpy.ones(arrays[0].shape, bool))
    if fixed is not None and len({array.shape for array in arrays}) == 1:
        pairs = zip(arrays, fixed.sizes, strict=True)
        is_fixed = numpy.logical_and.reduce([array == size for array, size in pairs])
        number = arrays[0].dtype.type(fixed.number)
        arrays = [numpy.where(is_fixed, number, array) for array in arrays]
    return Seed(arrays, is_open)


def _goes_on(condition: ir.Value, graph: ir.Graph, passes: Passes) -> bool:
    """Return True if a condition is true in every call, or is that of the round before."""
    arrays = [one.constants.get(condition) for one in passes.all]
    if all(array is not None and array.all() for array in arrays):
        return condition not in passes.open.elements
    while (node := condition.producer()) is not None and node.op_type == "Identity":
        before = node.inputs[0]
        assert before is not None
        condition = before
    return len(graph.inputs) > 1 and condition is graph.inputs[1]


class Symbols:
    """The symbols of a body's inputs: one for all axes that are equal in every sample."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self.samples: list[dict[str, int]] = [{} for _ in passes.all]
        self.places: dict[str, tuple[ir.Value, int]] = {}
        self._known: dict[object, str] = {}  # by the sizes, or by value and axis

    def shape(
        self, value: ir.Value, open_axes: Mapping[int, str], fixed: Tested | None
    ) -> tuple[Extent, ...]:
        """Return the shape of an input; some axes have symbols already, one may be a number."""
        shapes = [one.types[value].shape or () for one in self._passes.all]
        extents: list[Extent] = []
        assumed = self._passes.births.assumed
        for axis, found in enumerate(zip(*shapes, strict=True)):
            sizes = tuple(extent or 0 for extent in found)
            if axis in open_axes:
                symbol = open_axes[axis]
                births, samples = self._passes.births, self._passes.samples
                sizes = tuple(births.value(symbol, s, i) for i, s in enumerate(samples))
            elif fixed is not None and sizes == fixed.sizes:
                extents.append(fixed.number)
                continue
            elif self._is_apart(value, axis):
                symbol = self._symbol((value, axis))
                self.places.setdefault(symbol, (value, axis))
            elif len({*sizes}) == 1:
                extents.append(sizes[0])
                if sizes[0] > 1:  # others broadcast with 1
                    assumed.append(((value, axis), sizes[0]))
                continue
            else:
                symbol = self._symbol(sizes)
                first = self.places.setdefault(symbol, (value, axis))
                assumed.append(((value, axis), first))
            for sample, size in zip(self.samples, sizes, strict=True):
                sample[symbol] = size
            extents.append(symbol)
        return tuple(extents)

    def _is_apart(self, value: ir.Value, axis: int) -> bool:
        """Return True if other axes may be as long by chance."""
        limited = axis in self._passes.limited.of.get(value, ())
        return limited or (value.name, axis) in self._passes.births.apart

    def _symbol(self, key: object) -> str:
        return self._known.setdefault(key, f"s{len(self._known) + 1}")


def _constant(value: ir.Value, passes: Passes) -> Any:
    """Return the tensor of a captured value that is the same in every call."""
    import onnx_ir as ir

    if value.const_value is not None:
        return value.const_value
    arrays = [one.constants.get(value) for one in passes.all]
    if arrays[0] is None or any(array is None for array in arrays):
        return None
    if value in passes.open.elements:
        return None
    dtype = ir.DataType(passes.all[0].types[value].dtype)
    return ir.Tensor(arrays[0], dtype=dtype, name=value.name)


def _uses(graph: ir.Graph, value: ir.Value) -> bool:
    if any(one is value for one in graph.outputs):
        return True
    for node in graph:
        if any(one is value for one in node.inputs):
            return True
        if any(_uses(inner, value) for inner in graphs_of(node)):
            return True
    return False


def _separate(graph: ir.Graph) -> None:
    """Copy each output of a body that no node of it makes, or that is another output too."""
    import onnx_ir as ir

    seen: set[int] = set()
    for index, value in enumerate(graph.outputs):
        if value.producer() is None or id(value) in seen:
            node = ir.Node("", "Identity", [value], num_outputs=1)
            graph.append(node)
            made = node.outputs[0]
            made.name, made.type, made.shape = f"{value.name}_output{index}", value.type, None
            graph.outputs[index] = made
        seen.add(id(graph.outputs[index]))
