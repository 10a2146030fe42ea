"""Attention spelled out: two products with a Softmax between them become dso.Attention."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from .arrange import reshape_node
from .attention_operator import (
    HIDDEN,
    added_mask,
    attention_node,
    heads_of,
    is_causal,
    remove_weight,
)
from .graph import (
    constant,
    dims,
    equal_dims,
    is_float32,
    is_node,
    made_by,
    new_node,
    only_reads,
    only_use,
    replace,
    scalar,
    uniform,
)
from .views import Size, sizes


class _Scores(NamedTuple):
    """The input of a Softmax: scale * product + mask."""

    product: ir.Node
    scale: float
    mask: ir.Value | None
    condition: ir.Value | None = None  # a mask of bool
    choice: tuple[float, float] = (0.0, 0.0)  # what is added where it is True, and where False


def fuse_attention(model: ir.Model) -> int:
    """Replace MatMul, scale, mask, Softmax, MatMul by dso.Attention; return how many.

    The scale may be at q, at k or at the product. A Where that replaces rows without a key by zeros
    is what the kernel does anyway. The layout of all is "bhs": (batch, heads, rows, size).
    """
    count = 0
    for node in list(model.graph):
        if node.graph is None or not is_node(node, "MatMul") or not is_float32(*node.inputs):
            continue
        softmax = _softmax(node)
        scores = None if softmax is None else _scores(softmax.inputs[0])
        if scores is None or not _fits(scores, node):
            continue
        count += _replace(model, node, scores)
    return count


def _softmax(node: ir.Node) -> ir.Node | None:
    """Return the Softmax whose output a product multiplies, if nothing else reads it."""
    value, reader = node.inputs[0], node
    where = made_by(value, "Where")
    if where is not None:
        test = made_by(where.inputs[0], "IsNaN")
        value = where.inputs[2]
        both = test is not None and test.inputs[0] is value and scalar(where.inputs[1]) == 0.0
        if not both or only_use(where.outputs[0]) is not node or len(value.uses()) != 2:
            return None
        reader = where
    softmax = made_by(value, "Softmax")
    rank = len(dims(value) or ())
    if softmax is None or softmax.attributes.get_int("axis", -1) not in (-1, rank - 1):
        return None
    return softmax if reader is not node or only_reads(node, value) else None


def _scores(value: ir.Value) -> _Scores | None:
    """Return the product, scale and mask of a value that only a Softmax reads."""
    scale, mask, condition, choice = 1.0, None, None, (0.0, 0.0)
    while only_use(value) is not None:
        node = value.producer()
        if node is None or node.domain:
            return None
        if is_node(node, "MatMul"):
            return _Scores(node, scale, mask, condition, choice)
        unmasked = mask is condition is None and scale == 1.0
        if is_node(node, "Add") and unmasked:
            index = _product_index(node)
            value, mask = node.inputs[index], node.inputs[1 - index]
        elif is_node(node, "Where") and unmasked:
            index = 1 if uniform(node.inputs[2]) is not None else 2
            hidden = uniform(node.inputs[3 - index])
            if hidden is None or hidden > HIDDEN:
                return None
            choice = (0.0, hidden) if index == 1 else (hidden, 0.0)
            value, condition = node.inputs[index], node.inputs[0]
        elif (factor := _factor(node)) is not None:
            value, scale = factor[0], scale * factor[1]
        else:
            return None
    return None


def _product_index(node: ir.Node) -> int:
    """Return which input of a sum is the scaled product: the one with a MatMul before it."""
    value = node.inputs[0]
    for _ in range(3):
        made = None if value is None else value.producer()
        if made is None:
            return 1
        if is_node(made, "MatMul"):
            return 0
        factor = _factor(made)
        if factor is None:
            return 1
        value = factor[0]
    return 1


def _factor(node: ir.Node | None) -> tuple[ir.Value, float] | None:
    """Return the value and the number of a product or quotient with one number."""
    if node is None or not is_node(node, "Mul", "Div"):
        return None
    first, second = node.inputs
    number = scalar(second)
    if number is not None and equal_dims(dims(first) or (), dims(node.outputs[0]) or ()):
        if node.op_type == "Mul":
            return first, number
        return (first, 1.0 / number) if number else None
    number = scalar(first)
    if node.op_type == "Mul" and number is not None:
        return (
            (second, number)
            if equal_dims(dims(second) or (), dims(node.outputs[0]) or ())
            else None
        )
    return None


def _fits(scores: _Scores, node: ir.Node) -> bool:
    """Return True if q, k and v have equal batches, and the mask one number for each key."""
    inputs = (*scores.product.inputs, node.inputs[1])
    shapes = [dims(value) for value in (*inputs, node.outputs[0])]
    if not is_float32(*inputs):
        return False
    if any(shape is None or len(shape) not in (3, 4) for shape in shapes):
        return False
    if any(len(dims(one) or ()) == 3 and sizes(one) is None for one in inputs):
        return False
    q, k, v, output = (shape or () for shape in shapes)
    if not equal_dims(q[-2:-1], output[-2:-1]):
        return False
    values = (*scores.product.inputs, node.inputs[1])
    if len(q) == 3 and any(sizes(value) is None for value in values):  # of a Reshape to four axes
        return False
    if not all(equal_dims(q[:-2], shape[:-2]) for shape in (k, v, output)):
        return False
    if not all(isinstance(extent, int) for extent in (q[-1], v[-1])):
        return False
    for mask in (scores.mask, scores.condition):
        shape = dims(mask)
        if mask is not None and (shape is None or not shape or len(shape) > len(q)):
            return False
        if mask is not None and shape is not None and not equal_dims(shape[-1:], k[-1:]):
            return False
    return scores.mask is None or is_float32(scores.mask)


def _replace(model: ir.Model, node: ir.Node, scores: _Scores) -> bool:
    q, k = scores.product.inputs
    q, scale_q = _unscaled(q)
    k, scale_k = _unscaled(k)
    axes = list(range(len(dims(k) or ())))
    swapped = ir.AttrInt64s("perm", [*axes[:-2], axes[-1], axes[-2]])
    shape = [(dims(k) or ())[axis] for axis in swapped.value]
    turned = new_node("Transpose", [k], {"perm": swapped}, shape=shape)
    made: list[ir.Node] = [turned]
    inputs = []
    for value in (q, turned.outputs[0], node.inputs[1]):
        four = _four_axes(model, value)
        made += four
        inputs.append(four[-1].outputs[0] if four else value)
    mask, causal = _mask(model, scores, made)
    scale = scores.scale * scale_q * scale_k
    attributes = {**heads_of(inputs), "scale": scale, "is_causal": int(causal)}
    target = list(sizes(node.outputs[0]) or [])
    shape = [*(dims(inputs[0]) or ())[:3], (dims(inputs[2]) or ())[3]]
    attention = attention_node([*inputs, mask], attributes, shape, node.name)
    made.append(attention)
    if len(target) == 3:
        made.append(reshape_node(model, attention.outputs[0], target))
    replace(node, made)
    return True


def _unscaled(value: ir.Value) -> tuple[ir.Value, float]:
    factor = _factor(value.producer())
    return (value, 1.0) if factor is None else factor


def _four_axes(model: ir.Model, value: ir.Value) -> list[ir.Node]:
    """Return a Reshape of (heads, rows, size) to one head of each batch; none for four axes."""
    if len(dims(value) or ()) == 4:
        return []
    shape = sizes(value) or []
    return [reshape_node(model, value, [shape[0], Size(1), *shape[1:]])]


def _mask(model: ir.Model, scores: _Scores, made: list[ir.Node]) -> tuple[ir.Value | None, bool]:
    """Return the mask that is added, or True if it only hides later keys."""
    plane = (dims(scores.product.outputs[0]) or ())[-2:]
    mask = scores.mask
    if scores.condition is not None:
        mask = added_mask(model, scores.condition, scores.choice, made)
    array = constant(mask)
    if mask is not None and array is not None and is_causal(array, plane):
        remove_weight(model, mask)
        return None, True
    shape = sizes(mask) or []
    if mask is not None and len(shape) == 3 and len(dims(scores.product.outputs[0]) or ()) == 3:
        made.append(reshape_node(model, mask, [shape[0], Size(1), *shape[1:]]))
        mask = made[-1].outputs[0]
    return mask, False
