"""Regions of a graph whose values change their form together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx_ir as ir

from .graph import dims

# The operators that treat each element, or each channel, by itself.
EACH = {
    *("Abs", "Add", "BatchNormalization", "Cast", "Clip", "Concat", "Cos", "DequantizeLinear"),
    *(
        "Div",
        "Elu",
        "Erf",
        "Exp",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "Max",
    ),
    *("Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "QuantizeLinear", "Reciprocal", "Relu", "Selu"),
    *("Sigmoid", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Tanh", "Where"),
}


def region(
    model: ir.Model, is_seed: Callable[[ir.Node], bool], is_each: Callable[[ir.Node], bool]
) -> list[ir.Node]:
    """Return the seeds, and the operators of `EACH` that are joined to them, in order."""
    found = {node for node in model.graph if is_seed(node)}
    waiting = [*found]
    while waiting:
        for node in _adjacent(waiting.pop()):
            if node not in found and is_each(node):
                found.add(node)
                waiting.append(node)
    return [node for node in model.graph if node in found]


def _adjacent(node: ir.Node) -> Iterator[ir.Node]:
    for value in node.inputs:
        producer = None if value is None else value.producer()
        if producer is not None:
            yield producer
    for value in node.outputs:
        yield from (use.node for use in value.uses())


def rank_of(value: ir.Value | None) -> int:
    """Return how many axes a value has; -1 if that is not known."""
    found = dims(value)
    return -1 if found is None else len(found)
