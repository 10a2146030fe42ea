"""The layout of images, chosen once: in blocks of 16 channels wherever operators read them so.

A convolution reads and writes blocks fastest if its input has padding as wide as its windows need.
So every image that only such operators use is stored in blocks, with the widest padding that a
reader needs. Elsewhere a node ``dso.Reorder`` makes it planar.
"""

from __future__ import annotations

import onnx_ir as ir

from packer.operators import BLOCK

from .image import BLOCKED, image_of
from .lower.images import conv2d_padding
from .operator import set_stored, shape_of, stored

DOMAIN = "dso"
_ONE_INPUT = ("Pooling", "Resize")  # in and out in the same layout


def choose_layouts(graph: ir.Graph) -> None:
    """Store images in blocks, and add nodes that reorder them for other readers."""
    blocked = _blocked_values(graph)
    for node in list(graph):
        if node.op_type == "Concat" and node.outputs[0] in blocked:
            node.domain = DOMAIN
    for value in blocked:
        paddings = [
            max(conv2d_padding(node))
            for node, index in value.uses()
            if _is(node, "Conv") and index == 0
        ]
        image = image_of(value)._replace(block=BLOCK, padding=max(paddings, default=0))
        set_stored(value, image.stored)
    _share_frames(graph)
    for value in blocked:
        _reorder_for_others(graph, value)


def _is(node: ir.Node, *names: str) -> bool:
    return node.domain == DOMAIN and node.op_type in names


def _is_image(value: ir.Value | None) -> bool:
    if value is None or value.dtype != ir.DataType.FLOAT or value.shape is None:
        return False
    shape = shape_of(value)
    return len(shape) == 4 and isinstance(shape[1], int)


def _blocked_values(graph: ir.Graph) -> list[ir.Value]:
    """Return the values to store in blocks: their producer and a reader can use them so."""
    made = {
        id(out): out
        for node in graph
        for out in node.outputs[:1]
        if _is_image(out) and not out.is_graph_output() and _may_write(node)
        if not _is_one_pixel(out)
    }
    while True:
        kept = {
            key: value
            for key, value in made.items()
            if _writes(value.producer(), made) and any(_reads(n, i, made) for n, i in value.uses())
        }
        if len(kept) == len(made):
            return list(made.values())
        made = kept


def _may_write(node: ir.Node) -> bool:
    return _is(node, "Conv", *_ONE_INPUT, "Interleave", "Elementwise") or _is_channel_concat(node)


def _is_channel_concat(node: ir.Node) -> bool:
    """Return True for images joined along channels of which all but the last are whole blocks."""
    if node.domain or node.op_type != "Concat" or not all(_is_image(v) for v in node.inputs):
        return False
    channels = [shape_of(value)[1] for value in node.inputs if value is not None]
    return node.attributes.get_int("axis") in (1, -3) and all(
        isinstance(count, int) and count % BLOCK == 0 for count in channels[:-1]
    )


def _writes(node: ir.Node | None, blocked: dict[int, ir.Value]) -> bool:
    """Return True if a node can write its output in blocks when these values are."""
    assert node is not None
    if _is(node, "Conv"):
        residual = node.inputs[3] if len(node.inputs) > 3 else None
        return residual is None or id(residual) in blocked
    if _is(node, *_ONE_INPUT):
        return id(node.inputs[0]) in blocked
    if _is(node, "Elementwise"):
        return _writes_each(node, blocked)
    if _is(node, "Interleave") and shape_of(node.outputs[0])[1] % BLOCK:
        return False  # the pixels that it moves are whole blocks
    return all(id(value) in blocked for value in node.inputs)


def _writes_each(node: ir.Node, blocked: dict[int, ir.Value]) -> bool:
    """Return True if each input is in blocks, or has one value per channel or per pixel."""
    (out,) = node.outputs
    whole = shape_of(out)
    if whole[1] % BLOCK:
        return False
    of_blocks = 0
    for value in node.inputs:
        if value is None:
            continue
        shape = (1, 1, 1, 1, *shape_of(value))[-4:]
        if len(shape_of(value)) == 4 and shape == whole:
            if id(value) not in blocked:
                return False
            of_blocks += 1
        elif id(value) in blocked or (shape[1] != 1 and shape[2:] != (1, 1)):
            return False
    return of_blocks > 0


def _reads(node: ir.Node, index: int, blocked: dict[int, ir.Value]) -> bool:
    """Return True if a node can read this input in blocks."""
    if _is(node, "Conv"):
        return index == 0 or (index == 3 and id(node.outputs[0]) in blocked)
    if _is(node, "Interleave"):
        return True
    if _is(node, "Pooling"):
        return id(node.outputs[0]) in blocked or _is_one_pixel(node.outputs[0])
    return id(node.outputs[0]) in blocked


def _is_one_pixel(value: ir.Value) -> bool:
    """Return True if blocks and planes are the same bytes."""
    if not _is_image(value):
        return False
    return not stored(value).layout and image_of(value).block == BLOCK


def _share_frames(graph: ir.Graph) -> None:
    """A residual is read with the distances of the output, so both have the wider padding."""
    changed = True
    while changed:
        changed = False
        for node in graph:
            if not _is(node, "Conv") or len(node.inputs) < 4 or node.inputs[3] is None:
                continue
            pair = (node.inputs[3], node.outputs[0])
            if any(stored(value).layout != BLOCKED for value in pair):
                continue
            padding = max(stored(value).padding for value in pair)
            for value in pair:
                if stored(value).padding != padding:
                    set_stored(value, image_of(value)._replace(padding=padding).stored)
                    changed = True


def _reorder_for_others(graph: ir.Graph, value: ir.Value) -> None:
    """Give readers that need a planar image a copy."""
    others = [(node, i) for node, i in value.uses() if not _reads_stored(node, i)]
    if not others:
        return
    made = ir.Node(DOMAIN, "Reorder", [value], name=f"{value.name}/planar")
    (out,) = made.outputs
    out.name, out.shape, out.type = f"{value.name}/planar", value.shape, value.type
    producer = value.producer()
    assert producer is not None
    graph.insert_after(producer, made)
    for node, i in others:
        node.replace_input_with(i, out)


def _reads_stored(node: ir.Node, index: int) -> bool:
    out = node.outputs[0]
    is_blocked = stored(out).layout == BLOCKED
    if _is(node, "Conv"):
        return index == 0 or (index == 3 and is_blocked)
    if _is(node, "Interleave"):
        return True
    if _is(node, "Pooling"):
        return is_blocked or _is_one_pixel(out)
    return is_blocked or _is(node, "Reorder")
