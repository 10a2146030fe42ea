"""Tidying: constants as weights, and nodes without an effect or a use removed.

Most of it is done by passes of onnx-ir; each function names the one that it runs.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx_ir.passes import common

from .graph import dims, ints, is_node, only_first_output, optional, replace, same_shape, scalar


def inline_functions(model: ir.Model) -> int:
    """Replace calls of the model's own functions by their nodes: InlinePass."""
    return int(bool(model.functions) and common.InlinePass()(model).modified)


def lift_constants(model: ir.Model) -> int:
    """Make each Constant node a weight: LiftConstantsToInitializersPass."""
    lift = common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)
    return int(lift(model).modified)


def remove_identity(model: ir.Model) -> int:
    """Remove Identity nodes, but not from an input or a weight to an output.

    This is IdentityEliminationPass.
    """
    return int(common.IdentityEliminationPass()(model).modified)


def remove_dead_nodes(model: ir.Model) -> int:
    """Remove nodes and weights that no output needs: RemoveUnusedNodesPass."""
    return int(common.RemoveUnusedNodesPass()(model).modified)


def share_equal_nodes(model: ir.Model) -> int:
    """Compute equal expressions once: CommonSubexpressionEliminationPass."""
    return int(common.CommonSubexpressionEliminationPass()(model).modified)


def share_joined(model: ir.Model) -> int:
    """Let a Concat read the result of another one that joins some of its inputs; return how many.

    So the layers of a dense block, each of which joins all earlier ones, join two values.
    """
    made: dict[tuple[int, ...], ir.Value] = {}
    count = 0
    for node in model.graph:
        if not is_node(node, "Concat") or len(dims(node.outputs[0]) or ()) < 2:
            continue
        axis = node.attributes.get_int("axis") % len(dims(node.outputs[0]) or ())
        inputs = [*node.inputs]
        whole = (axis, *map(id, inputs))
        for length in range(len(inputs) - 1, 1, -1):
            found = made.get(whole[: length + 1])
            if found is not None:
                node.resize_inputs(1 + len(inputs) - length)
                for index, value in enumerate([found, *inputs[length:]]):
                    node.replace_input_with(index, value)
                count += 1
                break
        made.setdefault(whole, node.outputs[0])
    return count


def name_everything(model: ir.Model) -> int:
    """Give each node and value a unique name: NameFixPass."""
    return int(common.NameFixPass()(model).modified)


def remove_no_ops(model: ir.Model) -> int:
    """Remove nodes that return their first input: return how many.

    A Dropout in inference, a Cast to the same type, a Reshape or Expand to the same shape, a
    Transpose in order, a Pad of nothing, a sum with 0, a product with 1, a Concat of one value.
    """
    count = 0
    for node in model.graph:
        test = _NO_OPS.get(node.op_type) if node.domain == "" else None
        if test is None or not node.inputs or not test(node) or not only_first_output(node):
            continue
        value = node.inputs[0] if node.op_type not in _COMMUTES else _kept(node)
        if value is None or value.dtype != node.outputs[0].dtype:
            continue
        replace(node, [], value=value)
        count += 1
    return count


def _kept(node: ir.Node) -> ir.Value | None:
    """Return the input of a sum or product that is not the 0 or the 1."""
    neutral = {"Add": 0.0, "Mul": 1.0}[node.op_type]
    for value, other in (node.inputs, reversed(node.inputs)):
        if scalar(other) == neutral and same_shape(value, node.outputs[0]):
            return value
    return None


def _same_shape(node: ir.Node) -> bool:
    return same_shape(node.inputs[0], node.outputs[0])


def _in_order(node: ir.Node) -> bool:
    """Return True if a Transpose moves no axis but such of one element."""
    shape = dims(node.inputs[0])
    perm = node.attributes.get_ints("perm", None)
    if shape is None or perm is None or not _same_shape(node):
        return False
    moved = [axis for axis in perm if shape[axis] != 1]
    return moved == sorted(moved)


def _is_inference(node: ir.Node) -> bool:
    training = optional(node, 2)
    return training is None or scalar(training) == 0.0


def _has_neutral(neutral: float) -> Callable[[ir.Node], bool]:
    def test(node: ir.Node) -> bool:
        return scalar(node.inputs[1]) == neutral and _same_shape(node)

    return test


def _keeps_all(node: ir.Node) -> bool:
    """Return True if a Slice with positive steps returns as many elements as it has."""
    steps = optional(node, 4)
    return _same_shape(node) and (steps is None or min(ints(steps) or [-1]) > 0)


def _pads_nothing(node: ir.Node) -> bool:
    """Return True if all pads are 0; others of the same shape move the elements."""
    return _same_shape(node) and not any(ints(optional(node, 1)) or [1])


def _is_single(node: ir.Node) -> bool:
    return len(node.inputs) == 1


_COMMUTES = ("Add", "Mul")
_NO_OPS: dict[str, Callable[[ir.Node], bool]] = {
    "Dropout": _is_inference,
    "Cast": lambda node: True,  # the types are compared for all
    "CastLike": lambda node: True,
    "Reshape": _same_shape,
    "Flatten": _same_shape,
    "Squeeze": _same_shape,
    "Unsqueeze": _same_shape,
    "Expand": _same_shape,
    "Pad": _pads_nothing,
    "Slice": _keeps_all,
    "Transpose": _in_order,
    "Add": lambda node: True,
    "Mul": lambda node: True,
    "Sub": _has_neutral(0.0),
    "Div": _has_neutral(1.0),
    "Pow": _has_neutral(1.0),
    "Concat": _is_single,
    "Sum": _is_single,
    "Max": _is_single,
    "Min": _is_single,
    "Mean": _is_single,
}
