"""Branches, loops, sequences and optionals: operators of bytecode, most without a C function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer.declare.c_text import c_string

from ..operator import Flow, Operator
from ..read.flow_node import KEY, FlowNode
from .code import operator_of

if TYPE_CHECKING:
    import onnx_ir as ir

FUNCTIONS = "functions"  # in `ir.Node.meta`: the names of the bodies' functions


def flow(node: ir.Node) -> Operator:
    """Lower a node of `read.flow`; bodies have names."""
    found: FlowNode = node.meta[KEY]
    if found.call:
        made = Flow((), (), call=found.call, where=found.where)
        inputs = tuple(value for value in node.inputs if value is not None)
        outputs = tuple(node.outputs)
        return Operator(node.op_type.lower(), "", inputs, outputs, defines=found.born, flow=made)
    given = [index for index, value in enumerate(node.inputs) if value is not None]
    number = {index: i for i, index in enumerate(given)}
    made = Flow(
        tuple(node.meta[FUNCTIONS]),
        tuple(tuple(number[index] for index in indices) for indices in found.arguments),
        found.num_carried,
        has_rounds=0 in number,
        has_condition=1 in number,
    )
    inputs = tuple(value for value in node.inputs if value is not None)
    name = made.bodies[0]
    return Operator(name, "", inputs, tuple(node.outputs), defines=found.born, flow=made)


def raising(node: ir.Node) -> Operator:
    """Lower the body of a branch that no call can take."""
    text = c_string(node.attributes.get_string("text", ""))
    return operator_of("raise", f'  return dso_raise("ValueError", {text});\n', [], node.outputs)
