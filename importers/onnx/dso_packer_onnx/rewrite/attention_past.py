"""Attention of ONNX with past keys and values: Concat of each and its new rows, dso.Attention.

So a cache is appended in place as one of other graphs (state/cache.py).
"""

from __future__ import annotations

import math

import onnx_ir as ir

from ..extent import total
from .attention_operator import added_mask, attention_node, heads_of
from .graph import Dim, as_extent, dims, is_float32, is_node, new_node, optional, replace, reshape

_PAST = (4, 5)  # the inputs


def concat_past(model: ir.Model) -> int:
    """Write each Attention with past keys and values by other nodes; return how many.

    One with a softcap, with lengths, or whose products are read, remains.
    """
    count = 0
    for node in list(model.graph):
        past = [optional(node, index) for index in _PAST]
        if not is_node(node, "Attention") or not is_float32(*node.inputs[:3], *past):
            continue
        unread = all(not one.uses() and not one.is_graph_output() for one in node.outputs[3:])
        is_plain = optional(node, 6) is None and not node.attributes.get_float("softcap", 0.0)
        if is_plain and unread and _is_known(node):
            _write(model, node)
            count += 1
    return count


def _is_known(node: ir.Node) -> bool:
    """Return True if the heads and their sizes are."""
    q, k, v = (dims(value) or () for value in node.inputs[:3])
    past = [dims(node.inputs[index]) or () for index in _PAST]
    if len(q) not in (3, 4) or not len(q) == len(k) == len(v) or any(len(p) != 4 for p in past):
        return False
    heads = [node.attributes.get_int(name, 0) for name in ("q_num_heads", "kv_num_heads")]
    counts = [q[1], k[1]] if len(q) == 4 else heads
    return all(isinstance(one, int) and one for one in (*counts, q[-1], k[-1], v[-1]))


def _write(model: ir.Model, node: ir.Node) -> None:
    made: list[ir.Node] = []
    attributes, rank = node.attributes, len(dims(node.inputs[0]) or ())
    heads = [attributes.get_int(name, 0) for name in ("q_num_heads", *["kv_num_heads"] * 2)]
    if rank == 4:
        parts = list(node.inputs[:3])
    else:
        parts = [_split(model, *pair, made) for pair in zip(node.inputs[:3], heads, strict=True)]
    joined = [parts[0], *(_append(node, index, parts[index], made) for index in (1, 2))]
    q, _, v = (dims(value) or () for value in joined)
    mask = optional(node, 3)
    if mask is not None and mask.dtype == ir.DataType.BOOL:
        mask = added_mask(model, mask, (0.0, -math.inf), made)
    scale = attributes.get_float("scale", None)
    found = {
        **heads_of(joined[:2]),
        "scale": 1 / math.sqrt(int(q[3])) if scale is None else scale,
        "is_causal": attributes.get_int("is_causal", 0),
        "has_past": 1,
    }
    made.append(attention_node([*joined, mask], found, (*q[:3], v[3]), node.name))
    if rank != 4:
        turned = _turned(made[-1].outputs[0], made)
        made.append(reshape(model, turned, dims(node.outputs[0]) or ()))
    replace(node, made)


def _split(model: ir.Model, value: ir.Value, heads: int, made: list[ir.Node]) -> ir.Value:
    """Return (batch, rows, heads * size) as (batch, heads, rows, size)."""
    batch, rows, width = dims(value) or ()
    made.append(reshape(model, value, (batch, rows, heads, int(width) // heads)))
    return _turned(made[-1].outputs[0], made)


def _turned(value: ir.Value, made: list[ir.Node]) -> ir.Value:
    first, second, third, last = dims(value) or ()
    shape = (first, third, second, last)
    made.append(new_node("Transpose", [value], {"perm": [0, 2, 1, 3]}, shape=shape))
    return made[-1].outputs[0]


def _append(node: ir.Node, index: int, new: ir.Value, made: list[ir.Node]) -> ir.Value:
    """Join the past and the new rows; the result is an output of the node, if it has it."""
    past = node.inputs[index + 3]
    assert past is not None
    before, after = dims(past) or (), dims(new) or ()
    rows: Dim = total((as_extent(before[2]), as_extent(after[2])))
    concat = new_node("Concat", [past, new], {"axis": 2}, shape=(*before[:2], rows, before[3]))
    made.append(concat)
    if index < len(node.outputs):
        old, value = node.outputs[index], concat.outputs[0]
        value.name, old.name = old.name, None
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        if old.is_graph_output():
            graph.outputs[graph.outputs.index(old)] = value
        old.replace_all_uses_with(value)
    return concat.outputs[0]
