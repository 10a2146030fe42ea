"""GRU and RNN that run backwards: forward ones over the reversed sequence.

The generator of C code has forward ones only.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import Array, constant, dims, is_node, new_node, new_weight, optional, replace

_LEAST = np.iinfo(np.int64).min
_ACTIVATIONS = {"GRU": 2, "RNN": 1}  # of a direction


def split_directions(model: ir.Model) -> int:
    """Replace each GRU and RNN that is reverse or bidirectional by forward ones; return how many.

    Its weights are constants, and it has no lengths of sequences and no parameters of activations.
    """
    count = 0
    for node in model.graph:
        direction = node.attributes.get_string("direction", "forward")
        if not is_node(node, *_ACTIVATIONS) or direction == "forward" or not _is_plain(node):
            continue
        weights = [constant(optional(node, index)) for index in (1, 2, 3)]
        if weights[0] is None or weights[1] is None:
            continue
        if optional(node, 3) is not None and weights[2] is None:
            continue
        outputs = list(node.outputs)
        for index, nodes in _replacements(model, node, str(direction), weights).items():
            replace(node, nodes, old=outputs[index])
        count += 1
    return count


def _is_plain(node: ir.Node) -> bool:
    if optional(node, 4) is not None or node.attributes.get_int("layout", 0):
        return False
    return not {"activation_alpha", "activation_beta"} & set(node.attributes)


def _replacements(
    model: ir.Model, node: ir.Node, direction: str, weights: list[Array | None]
) -> dict[int, list[ir.Node]]:
    """Return the nodes that make each output of a node."""
    made: list[ir.Node] = []
    sequence, state = [], []
    reverse = [direction == "reverse"] if direction != "bidirectional" else [False, True]
    for index, is_reversed in enumerate(reverse):
        x = node.inputs[0]
        assert x is not None
        if is_reversed:
            made.append(_reversed(model, x))
            x = made[-1].outputs[0]
        one = _forward(model, node, index, x, weights, made)
        made.append(one)
        sequence.append(one.outputs[0])
        state.append(one.outputs[1])
        if is_reversed:
            made.append(_reversed(model, one.outputs[0]))
            sequence[-1] = made[-1].outputs[0]
    first = [*made, new_node("Concat", sequence, {"axis": 1}, like=node.outputs[0])]
    found = {0: first}
    if len(node.outputs) > 1 and node.outputs[1].name:
        found[1] = [new_node("Concat", state, {"axis": 0}, like=node.outputs[1])]
    return found


def _forward(
    model: ir.Model,
    node: ir.Node,
    index: int,
    x: ir.Value,
    weights: list[Array | None],
    made: list[ir.Node],
) -> ir.Node:
    """Make the forward node of one direction; a part of a computed state is added to `made`."""
    parts: list[ir.Value | None] = []
    for i, array in enumerate(weights):
        name, own = f"{node.name}.{i}.{index}", None if array is None else array[index : index + 1]
        parts.append(None if own is None else new_weight(model, name, own))
    state = optional(node, 5)
    if state is not None:
        bounds = [
            new_weight(model, f"{node.name}.{name}.{index}", np.array([bound], np.int64))
            for name, bound in (("begin", index), ("end", index + 1), ("axis", 0))
        ]
        extents = dims(state) or ()
        made.append(new_node("Slice", [state, *bounds], shape=(1, *extents[1:]), dtype=_dtype(x)))
        state = made[-1].outputs[0]
    attributes = {
        name: attribute.value
        for name, attribute in node.attributes.items()
        if name not in ("direction", "activations")
    }
    each = _ACTIVATIONS[node.op_type]
    if activations := node.attributes.get_strings("activations"):
        attributes["activations"] = activations[index * each : (index + 1) * each]
    length, batch, _ = dims(x) or ()
    hidden = weights[1].shape[-1] if weights[1] is not None else 0
    one = ir.node(node.op_type, [x, *parts, None, state], attributes, num_outputs=2)
    for value, shape in zip(
        one.outputs, ((length, 1, batch, hidden), (1, batch, hidden)), strict=True
    ):
        value.type, value.shape = ir.TensorType(_dtype(x)), ir.Shape(shape)
    return one


def _reversed(model: ir.Model, value: ir.Value) -> ir.Node:
    """Make the node that shows a value from its last element of the first axis to its first one."""
    bounds = [
        new_weight(model, f"reversed.{name}", np.array([bound], np.int64))
        for name, bound in (("begin", -1), ("end", _LEAST), ("axis", 0), ("step", -1))
    ]
    return new_node("Slice", [value, *bounds], shape=dims(value), dtype=_dtype(value))


def _dtype(value: ir.Value) -> ir.DataType:
    assert value.dtype is not None
    return value.dtype
