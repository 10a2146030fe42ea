"""Attention that reads keys and values where a cache has them, each row once."""

from __future__ import annotations

import onnx_ir as ir

from .attention_operator import attention_node
from .chains import view_of
from .graph import DSO, is_node, optional, replace
from .views import ONE, Factor, Size, View, joined, sizes


def attend_to_caches(model: ir.Model) -> int:
    """Let dso.Attention read the memory of caches, (rows, batch, heads, size); return how many.

    Heads of q that share keys read the same ones: nothing repeats them.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "Attention", domain=DSO):
            continue
        if node.attributes.get_string("layout") != "bhs" or "kv_layout" in node.attributes:
            continue
        count += _attend(node)
    return count


def _attend(node: ir.Node) -> bool:
    found = [_cache(value) for value in node.inputs[1:3]]
    caches = [cache for cache in found if cache is not None]
    if len(caches) != 2 or caches[0][1] != caches[1][1]:
        return False
    attributes = {key: item.value for key, item in node.attributes.items()}
    attributes |= {"kv_num_heads": caches[0][1], "kv_layout": "sbhd"}
    inputs = [node.inputs[0], *(cache for cache, _ in caches), optional(node, 3)]
    shape = [*(node.outputs[0].shape or ())]
    replace(node, [attention_node(inputs, attributes, shape, node.name)])
    return True


def _cache(value: ir.Value | None) -> tuple[ir.Value, int] | None:
    """Return the cache that a value (batch, heads, rows, size) shows, and its number of heads."""
    extents = None if value is None else sizes(value)
    view = None if value is None else view_of(value)
    if view is None or extents is None or not is_node(view.base.producer(), "Append", domain=DSO):
        return None
    memory = sizes(view.base)
    if memory is None or len(memory) != 4 or len(extents) != 4 or memory[2].names:
        return None
    return (view.base, memory[2].number) if _is_turned(view, memory, extents) else None


def _is_turned(view: View, memory: list[Size], extents: list[Size]) -> bool:
    """Return True if a view has the batch, heads, rows and sizes of a memory in this order."""
    rows, batch, heads, size = memory
    shared = extents[1].over(heads)
    if view.offset or shared is None or [extents[0], extents[2], extents[3]] != [batch, rows, size]:
        return False
    width = heads.times(size)
    strides = (
        [Factor(batch, width)],
        [Factor(heads, size), Factor(shared, Size(0))],
        [Factor(rows, batch.times(width))],
        [Factor(size, ONE)],
    )
    return all(
        joined(axis) == [factor for factor in expected if factor.extent != ONE]
        for axis, expected in zip(view.axes, strides, strict=True)
    )
