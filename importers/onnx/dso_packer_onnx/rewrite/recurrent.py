"""LSTM, GRU and RNN: one product of the input of all steps, and dso.Recurrent of the states.

dso.Recurrent has the inputs: product of the input, weight of the state, bias after the reset of a
GRU, peepholes, lengths, first states h and c; all but the first two may be missing. Its outputs are
the values y, h and c that are read, as the attribute ``results`` has them. The product has the
shape (steps, batch, directions * gates * units), where units is the hidden size rounded up to 16.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from packer.operators import BLOCK

from .graph import (
    DSO,
    Array,
    changed_weight,
    constant,
    dims,
    equal_dims,
    is_constant,
    is_float32,
    is_node,
    new_node,
    new_weight,
    optional,
    replace,
)
from .matmul import PLAIN

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_RESULTS = {"LSTM": ("y", "h", "c"), "GRU": ("y", "h"), "RNN": ("y", "h")}
# The kind of a cell by its operator and activations.
_KINDS = {
    ("LSTM", ("Sigmoid", "Tanh", "Tanh")): "lstm",
    ("GRU", ("Sigmoid", "Tanh")): "gru",
    ("RNN", ("Tanh",)): "rnn_tanh",
    ("RNN", ("Relu",)): "rnn_relu",
}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_UNKNOWN = ("activation_alpha", "activation_beta")


def fuse_recurrent(model: ir.Model) -> int:
    """Replace float32 LSTM, GRU and RNN by dso.MatMul and dso.Recurrent; return how many.

    The weights are constants, and the activations the defaults of ONNX, or Relu of an RNN.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, *_GATES):
            continue
        kind, results = _kind(node), _results(node)
        if kind is None or not results or not _fits(node):
            continue
        _replace(model, _Layer.of(node, kind), results)
        count += 1
    return count


class _Layer(NamedTuple):
    """A layer and its extents."""

    node: ir.Node
    kind: str
    directions: int
    gates: int
    hidden: int

    @classmethod
    def of(cls, node: ir.Node, kind: str) -> _Layer:
        directions, _, hidden = map(int, dims(node.inputs[2]) or ())
        return cls(node, kind, directions, _GATES[node.op_type], hidden)


class _Inputs(NamedTuple):
    """The inputs of a layer, in their order."""

    x: ir.Value | None
    weight: ir.Value | None
    state: ir.Value | None
    bias: ir.Value | None
    lengths: ir.Value | None
    h: ir.Value | None
    c: ir.Value | None
    peephole: ir.Value | None

    @classmethod
    def of(cls, node: ir.Node) -> _Inputs:
        return cls(*(optional(node, index) for index in range(len(cls._fields))))


def _kind(node: ir.Node) -> str | None:
    """Return the name of the cell, or None if the kernel does not have it."""
    attributes = node.attributes
    if any(name in attributes for name in _UNKNOWN):
        return None
    if attributes.get_int("layout", 0) or not attributes.get_float("clip", 1.0) > 0:
        return None
    defaults = _DEFAULTS[node.op_type]
    names = list(attributes.get_strings("activations", defaults))
    each = names[: len(defaults)]
    if names not in (each, each * 2):
        return None
    kind = _KINDS.get((node.op_type, tuple(each)))
    after = kind == "gru" and attributes.get_int("linear_before_reset", 0)
    return "gru_reset_after" if after else kind


def _results(node: ir.Node) -> dict[str, ir.Value]:
    """Return the outputs that are read."""
    named = zip(_RESULTS[node.op_type], node.outputs, strict=False)
    return {name: value for name, value in named if value.uses() or value.is_graph_output()}


def _fits(node: ir.Node) -> bool:
    """Return True if weights are constants, and all extents agree."""
    given = _Inputs.of(node)
    x, weight, state = dims(given.x), dims(given.weight), dims(given.state)
    if x is None or weight is None or state is None or not is_float32(given.x):
        return False
    weights = [given.weight, given.state, given.bias, given.peephole]
    weights = [value for value in weights if value is not None]
    if not is_float32(*weights) or not all(map(is_constant, weights)):
        return False
    if 0 in x or 0 in state or len(x) != 3 or x[2] != weight[2]:
        return False
    directions, batch, hidden = state[0], x[1], state[2]
    if given.peephole is not None and dims(given.peephole) != (directions, 3 * hidden):
        return False
    if given.lengths is not None and not equal_dims(dims(given.lengths) or (), (batch,)):
        return False
    states = [value for value in (given.h, given.c) if value is not None]
    shape = (directions, batch, hidden)
    return all(is_float32(value) and equal_dims(dims(value) or (), shape) for value in states)


def _replace(model: ir.Model, layer: _Layer, results: dict[str, ir.Value]) -> None:
    node, given = layer.node, _Inputs.of(layer.node)
    bias, after_reset = _biases(model, layer, given.bias)
    product = _product(model, layer, given, bias)
    assert given.state is not None
    inputs = [
        product.outputs[0],
        changed_weight(
            model, given.state, _matrices(layer, given.state), f"the matrices of {node.name!r}"
        ),
        after_reset,
        None if given.peephole is None else _peepholes(model, layer, given.peephole),
        *(given.lengths, given.h, given.c),
    ]
    while inputs[-1] is None:
        inputs.pop()
    attributes = [
        ir.AttrString("kind", layer.kind),
        ir.AttrInt64("reverse", int(node.attributes.get_string("direction") == "reverse")),
        ir.AttrStrings("results", list(results)),
        *([node.attributes["clip"]] if "clip" in node.attributes else []),
    ]
    count = len(results)
    new = ir.Node(DSO, "Recurrent", inputs, attributes, num_outputs=count, name=node.name)
    nodes = [product, new]
    for old, made in zip(results.values(), new.outputs, strict=True):
        made.type, made.shape = old.type, old.shape
        if not old.is_graph_output():
            made.name, old.name = old.name, None
        replace(node, nodes, made, old)
        nodes = []


def _product(model: ir.Model, layer: _Layer, given: _Inputs, bias: ir.Value | None) -> ir.Node:
    """Make the product of the input of all steps and the weights of all gates."""
    assert given.weight is not None
    name = layer.node.name
    why = f"the gates of {name!r}, one after the other"
    weight = changed_weight(model, given.weight, _stacked(layer, given.weight), why)
    return new_node(
        "MatMul",
        [given.x, weight] if bias is None else [given.x, weight, bias],
        {"trans_a": 0, "trans_b": 1, **PLAIN},
        shape=[*(dims(given.x) or ())[:2], *(dims(weight) or ())[:1]],
        name=f"{name}.input",
        domain=DSO,
    )


def _units(array: Array, axis: int) -> Array:
    """Return an array with zeros along an axis of hidden units, to whole blocks."""
    pads = [(0, 0)] * array.ndim
    pads[axis] = (0, -array.shape[axis] % BLOCK)
    return np.pad(array, pads)


def _elements(value: ir.Value) -> Array:
    array = constant(value)
    assert array is not None
    return array


def _gates(layer: _Layer, array: Array) -> Array:
    """Return the weights of the gates; 1 - sigmoid(x), a coupled forget gate, is sigmoid(-x)."""
    if not layer.node.attributes.get_int("input_forget", 0):
        return array
    array = array.copy()
    array[:, 2] = -array[:, 0]
    return array


def _stacked(layer: _Layer, weight: ir.Value) -> Array:
    """Return the weight of the input, (directions * gates * units, inputs)."""
    array = _elements(weight)
    inputs = array.shape[-1]
    array = array.reshape(layer.directions, layer.gates, layer.hidden, inputs)
    return _units(_gates(layer, array), 2).reshape(-1, inputs)


def _matrices(layer: _Layer, weight: ir.Value) -> Array:
    """Return the weight of the state, (directions, gates, hidden, hidden)."""
    shape = (layer.directions, layer.gates, layer.hidden, layer.hidden)
    return _gates(layer, _elements(weight).reshape(shape))


def _biases(
    model: ir.Model, layer: _Layer, bias: ir.Value | None
) -> tuple[ir.Value | None, ir.Value | None]:
    """Return the bias of the input's product, and that of the product that a GRU resets."""
    is_reset, name = layer.kind == "gru_reset_after", layer.node.name
    if bias is None:
        zeros = np.zeros((layer.directions, layer.hidden), np.float32)
        after = new_weight(model, f"{name}.bias", _units(zeros, 1)) if is_reset else None
        return None, after
    of_input, of_state = np.moveaxis(
        _elements(bias).reshape(layer.directions, 2, layer.gates, layer.hidden), 1, 0
    )
    after = None
    if is_reset:
        after = new_weight(model, f"{name}.bias", _units(of_state[:, 2], 1))
        of_state = of_state * np.array([1, 1, 0], np.float32)[:, None]
    why = f"the sums of the biases of {name!r}"
    total = _units(_gates(layer, of_input + of_state), 2).reshape(-1)
    return changed_weight(model, bias, total, why), after


def _peepholes(model: ir.Model, layer: _Layer, peephole: ir.Value) -> ir.Value:
    """Return the peepholes, (directions, 3, units)."""
    array = _elements(peephole).reshape(layer.directions, 3, layer.hidden)
    why = f"the peepholes of {layer.node.name!r}"
    return changed_weight(model, peephole, _units(_gates(layer, array), 2), why)
