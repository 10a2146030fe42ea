"""The tree of modules of a model: program, operators, weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.levels.note import mark_imported

from .host import operator_modules
from .layout import choose_layouts
from .lower.bits import use_bits
from .lower.nodes import lower_nodes
from .named import name_extents
from .plain_loops import plain_loops_note
from .program import Variant, function_names, make_program
from .read import conditions_of, fix_inputs, read_model, with_shapes
from .record import KEY, graph_record
from .rewrite import rewrite
from .state import append_in_place, find_pairs, name_totals
from .weights import Weights

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import VMExecutable

    from . import InputShapes

_MAIN = "main"
# An export without `cpu` compiles for these: for every processor, and for wider vectors.
_LEVELS = ("x86-64-v1", "x86-64-v3", "x86-64-v4", "armv8-a", "armv8.2-a", "armv9-a")


def make_tree(
    model: Any,
    sets: Sequence[InputShapes],
    values: Mapping[str, Any],
    options: tuple[str, ...],
    progress: Callable[[str], None],
    notes: list[str],
    state: Mapping[str, str] | None = None,
    weight_bits: tuple[int, int] | None = None,
) -> VMExecutable:
    """Make what `from_onnx` returns; `sets` has at least one set of shapes.

    `weight_bits` are the bits of a weight and the inputs of a block.
    """
    if state and len(sets) > 1:
        text = f"state, expected one set of input shapes, found {len(sets)}; leave lengths open"
        raise ExportError(f"from_onnx: {text}")
    progress("read the model")
    source = read_model(model)
    fix_inputs(source, values)
    folded: dict[str, str] = {}
    variants = []
    for shapes in sets:
        shaped = with_shapes(source, shapes)
        pairs = find_pairs(shaped, state, notes) if len(sets) == 1 else []
        states = append_in_place(shaped, pairs)
        named = name_totals(shaped.graph, states)
        progress("make its operators")
        folded |= rewrite(shaped)
        named |= name_extents(shaped.graph)
        if weight_bits is not None:
            notes += use_bits(shaped, *weight_bits)
        choose_layouts(shaped.graph)
        operators = lower_nodes(shaped.graph)
        conditions = conditions_of(shaped)
        variants.append(Variant(shaped.graph, operators, conditions, named, states))
    weights = _weights_of(variants)
    progress("make its program")
    program = make_program(variants, weights.names, _MAIN)
    operators = [operator for variant in variants for operator in variant.operators]
    for module in operator_modules(operators, options):
        program.import_module(module)
    functions = function_names(_MAIN, len(variants))
    folded = {**_not_stored(source.graph, weights), **folded}
    record = graph_record(variants, functions, weights, folded)
    program.import_module(weights.module({KEY: record}))
    note = plain_loops_note(variants[0].operators)
    notes = [*notes, *([note] if note else [])]
    mark_imported(program, "the model's code", *notes, levels=_LEVELS)
    return program


def _weights_of(variants: Sequence[Variant]) -> Weights:
    """Return the weights that operators read or that are outputs."""
    weights = Weights()
    for variant in variants:
        read = (value for operator in variant.operators for value in operator.inputs)
        for value in (*read, *variant.graph.outputs):
            if value.const_value is not None:
                weights.add(value)
    return weights


def _not_stored(graph: ir.Graph, weights: Weights) -> dict[str, str]:
    """Return why weights of the model are not in the file."""
    stored = weights.stored() | set(weights.equal)
    return {name: "no operator reads it" for name in graph.initializers if name not in stored}
