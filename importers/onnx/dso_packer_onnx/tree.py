"""The tree of modules of a model: program, operators, weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.levels.note import mark_imported
from packer.levels.table import DEFAULT_LEVELS

from .host import operator_modules
from .layout import choose_layouts
from .lower.bits import Bits, use_bits
from .lower.flow import FUNCTIONS
from .lower.nodes import in_order, lower_nodes
from .lower.shared import share_functions
from .named import name_extents
from .operator import shape_of
from .plain_loops import plain_loops_note
from .program import make_program
from .read import bodies_of, conditions_of, take_extents, with_shapes
from .read.objects import object_of
from .record import KEY, graph_record
from .rewrite import rewrite
from .rewrite.attention_past import concat_past
from .state import (
    MAIN,
    append_in_place,
    find_pairs,
    given_to,
    guards_of,
    name_totals,
    read_parts,
)
from .variant import Body, Variant, all_operators, function_names, with_bodies
from .weights import Weights

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import VMExecutable

    from . import InputShapes
    from .state import Part


def make_tree(
    model: Any,
    sets: Sequence[InputShapes],
    values: Mapping[str, Any],
    options: tuple[str, ...],
    progress: Callable[[str], None],
    notes: list[str],
    state: Mapping[str, str] | None,
    bits: Bits,
) -> VMExecutable:
    """Make what `from_onnx` returns; `sets` has at least one set of shapes."""
    if state and len(sets) > 1:
        text = f"state, expected one set of input shapes, found {len(sets)}; leave lengths open"
        raise ExportError(f"from_onnx: {text}")
    progress("read the model")
    parts = read_parts(model, values, state)
    if len(sets) > 1:
        _check_sets(parts, sets)
    models = [
        with_shapes(part.model, given_to(part, parts, shapes)) for part in parts for shapes in sets
    ]
    if len(sets) > 1:  # a set that is given twice is one
        of_inputs = {tuple(map(shape_of, made.graph.inputs)): made for made in models}
        models = [*of_inputs.values()]
    for made in models:
        concat_past(made)
    pairs = find_pairs(models, state, notes) if len(sets) == 1 else {}
    states = append_in_place(models, pairs)
    folded: dict[str, str] = {}
    variants, numbers = [], count(1)
    progress("make its operators")
    for shaped in models:
        named = name_totals(shaped.graph, states)
        made = _variant(shaped, folded, numbers, bits, notes)
        variants.append(made._replace(named={**named, **made.named}, states=states))
    if len(parts) > 1:
        found = zip(variants, guards_of(parts, variants), strict=True)
        variants = [one._replace(guards=guards) for one, guards in found]
    weights = _weights_of(variants)
    progress("make its program")
    program = make_program(variants, weights.names, MAIN, parts if len(parts) > 1 else ())
    operators = [one for variant in variants for one in all_operators(variant)]
    for module in operator_modules(operators, options):
        program.import_module(module)
    folded = {**_not_stored(parts, weights), **folded}
    ends = variants
    if len(parts) > 1:
        ends = [
            one for one, part in zip(variants, parts, strict=True) if part.is_first is not False
        ]
        functions = [part.function for part in parts if part.is_first is not False]
    else:
        functions = function_names(MAIN, len(variants))
    record = graph_record(ends, functions, weights, folded)
    program.import_module(weights.module({KEY: record}))
    note = plain_loops_note(variants[0].operators)
    notes = [*notes, *([note] if note else [])]
    mark_imported(program, "the model's code", *notes, levels=DEFAULT_LEVELS)
    return program


def _variant(
    model: ir.Model,
    folded: dict[str, str],
    numbers: Iterator[int],
    bits: Bits,
    notes: list[str],
) -> Variant:
    """Make the operators of a model with shapes, and of its bodies."""
    folded |= rewrite(model)
    take_extents(model)
    named = name_extents(model.graph)
    bodies = []
    for node in model.graph:
        made = [
            Body(f"body_{next(numbers)}", _variant(body.model, folded, numbers, bits, notes))
            for body in bodies_of(node)
        ]
        node.meta[FUNCTIONS] = [body.function for body in made]
        notes += [body.raises for body in bodies_of(node) if body.raises]
        bodies += made
    notes += use_bits(model, bits)
    choose_layouts(model.graph)
    operators = share_functions(in_order(lower_nodes(model.graph)))
    return Variant(model.graph, operators, conditions_of(model), named, bodies=bodies)


def _weights_of(variants: Sequence[Variant]) -> Weights:
    """Return the weights that operators read or that are outputs."""
    weights = Weights()
    for variant in (one for outer in variants for one in with_bodies(outer)):
        read = (value for operator in variant.operators for value in operator.inputs)
        for value in (*read, *variant.graph.outputs):
            if value.const_value is not None:
                weights.add(value)
    return weights


def _not_stored(parts: Sequence[Part], weights: Weights) -> dict[str, str]:
    """Return why weights of the model are not in the file."""
    stored = weights.stored() | set(weights.equal)
    names = [name for part in parts for name in part.model.graph.initializers]
    return {name: "no operator reads it" for name in names if name not in stored}


def _check_sets(parts: Sequence[Part], sets: Sequence[InputShapes]) -> None:
    """Refuse several sets of shapes for a model that takes one."""
    inputs = [value for part in parts for value in part.model.graph.inputs]
    found = [f"input {v.name!r} is a sequence or an optional" for v in inputs if object_of(v)]
    found += ["the model has several graphs"] if len(parts) > 1 else []
    if found:
        text = f"{found[0]}, expected one set of input shapes, found {len(sets)}"
        raise ExportError(f"from_onnx: {text}; leave extents open")
