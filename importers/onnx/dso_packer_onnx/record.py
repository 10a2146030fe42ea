"""The record ``dso.graph``: what a model is, as JSON in the metadata of its weights.

version     1
inputs, outputs     [{"name", "dtype", "shape", "most"?}]; an open extent is its expression, and
            most has the greatest values of extents by name; the shape ["..."] is of any rank; the
            dtype of a sequence or optional is seq(float32), optional(float32), or
            optional(seq(float32))
variants    of a model for several sets of shapes, or of several functions, main first:
            [{"function", "inputs", "outputs"}]
states      [{"input", "output", "appended"}]: what a session keeps, which is neither in inputs nor
            in outputs; values has both
nodes       [{"name", "op", "function", "inputs": [names], "outputs": [names], "flops"}],
            in the order of the calls; for the first set of shapes
values      {name: {"dtype", "shape", "layout"?}}; shape is that of ONNX
weights     {name: {"form": "packed", ...}}, or {"form": "equal", "name"}: that weight is stored;
            "of": the weight of which this is another form
folded      {name of a weight that is not stored: why}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runtime.abi import MODEL_RECORD

from .dtypes import dtype_name
from .lower.packing import packing_of
from .operator import shape_of, stored
from .read.objects import object_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from .extent import Extent
    from .operator import Operator
    from .variant import Variant
    from .weights import Weights

KEY = MODEL_RECORD


def graph_record(
    variants: Sequence[Variant],
    functions: Sequence[str],
    weights: Weights,
    folded: Mapping[str, str],
) -> str:
    """Return the record as JSON.

    Parameters
    ----------
    variants : sequence of Variant
        As `make_program` takes them.
    functions : sequence of str
        The function of each variant.
    weights : Weights
        The weights that are stored.
    folded : mapping of str to str
        The weights of the model that are not stored, each with the reason.
    """
    graph, operators, _, named, states, *_ = variants[0]
    record: dict[str, Any] = {"version": 1, **_ends(variants[0])}
    if len(variants) > 1:
        record["variants"] = [
            {"function": function, **_ends(variant)}
            for function, variant in zip(functions, variants, strict=True)
        ]
    if states:
        record["states"] = [
            {"input": state.input, "output": state.output, "appended": state.is_appended}
            for state in states
        ]
    record["nodes"] = [_node(operator, weights) for operator in operators]
    values = (value for one in operators for value in (*one.inputs, *one.outputs))
    record["values"] = {
        weights.names.get(value, str(value.name)): _value(value, named)
        for value in (*graph.inputs, *dict.fromkeys(values), *graph.outputs)
    }
    forms = {name: _form(value, name) for value, name in weights.names.items()}
    equal = {name: {"form": "equal", "name": other} for name, other in weights.equal.items()}
    record["weights"] = {name: form for name, form in forms.items() if form} | equal
    record["folded"] = dict(folded)
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _form(value: ir.Value, name: str) -> dict[str, Any]:
    """Return how a weight is stored; ``of`` is the weight of which this is another form."""
    form = dict(packing_of(value) or {})
    if name.startswith(f"{value.name}#"):
        form = {"form": "plain", **form, "of": str(value.name)}
    return form


def _ends(variant: Variant) -> dict[str, Any]:
    most = variant.conditions.most
    inputs = []
    for value in variant.arguments:
        bounds = {
            name: most[name] for name in shape_of(value) if isinstance(name, str) and name in most
        }
        of_input = {"name": value.name, **_type(value, {})}
        inputs.append({**of_input, **({"most": bounds} if bounds else {})})
    outputs = [{"name": value.name, **_type(value, variant.named)} for value in variant.results]
    return {"inputs": inputs, "outputs": outputs}


def _type(value: ir.Value, named: Mapping[str, Extent]) -> dict[str, Any]:
    shape = [
        named.get(extent, extent) if isinstance(extent, str) else extent
        for extent in shape_of(value)
    ]
    known = object_of(value)
    if known is not None and known.is_any_rank:
        shape = ["..."]
    return {"dtype": str(known or dtype_name(value)), "shape": shape}


def _value(value: ir.Value, named: Mapping[str, Extent]) -> dict[str, Any]:
    layout = stored(value).layout
    return {**_type(value, named), **({"layout": layout} if layout else {})}


def _node(operator: Operator, weights: Weights) -> dict[str, Any]:
    node = operator.outputs[0].producer()
    domain = "" if node is None or node.domain in ("", "ai.onnx") else f"{node.domain}."
    return {
        "name": (node.name if node else None) or str(operator.outputs[0].name),
        "op": f"{domain}{node.op_type}" if node else "",
        "function": operator.name,
        "inputs": [weights.names.get(value, value.name) for value in operator.inputs],
        "outputs": [value.name for value in operator.outputs],
        "flops": operator.flops,
    }
