"""Recurrent layers, as calls of `packer.operators`."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from packer.operators import workspace as need

from ..extent import in_c, product
from ..operator import elements, shape_of
from .code import operator_of
from .epilogue import float_in_c
from .guards import HELPER, INCLUDE
from .packing import packed_matmul

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator

_FLOAT = 4
_KINDS = {  # the name in C, and the states in the workspace
    "lstm": ("DSO_OP_LSTM", 3),
    "gru": ("DSO_OP_GRU", 4),
    "gru_reset_after": ("DSO_OP_GRU_RESET_AFTER", 2),
    "rnn_tanh": ("DSO_OP_RNN_TANH", 2),
    "rnn_relu": ("DSO_OP_RNN_RELU", 2),
}
_INPUTS = ("x", "weight", "bias", "peephole", "lengths", "h", "c")
_RESULTS = {"y": "y", "h": "last_h", "c": "last_c"}


def recurrent(node: ir.Node) -> Operator:
    """Lower the steps of a layer; the weight of the state is packed."""
    given = dict(zip(_INPUTS, node.inputs, strict=False))
    weight, x = given["weight"], given["x"]
    assert weight is not None
    assert x is not None
    matrices = shape_of(weight)
    directions, hidden = int(matrices[0]), int(matrices[-1])
    steps, batch, _ = shape_of(x)
    given["weight"] = packed_matmul(weight, is_transposed=True)
    inputs = {name: value for name, value in given.items() if value is not None}
    kind, states = _KINDS[node.attributes.get_string("kind") or ""]
    results = [_RESULTS[name] for name in node.attributes.get_strings("results")]
    pointers = [f".{name} = x{i}" for i, name in enumerate(inputs)]
    pointers += [f".{name} = y{i}" for i, name in enumerate(results)]
    check = ""
    if "lengths" in inputs:
        check = _check(list(inputs).index("lengths"), in_c(batch), in_c(steps))
    body = f"""\
{check}  const struct dso_op_recurrent layer = {{
      .kind = {kind}, .directions = {directions},
      .steps = {in_c(steps)}, .batch = {in_c(batch)}, .hidden = {hidden},
      .is_reverse = {node.attributes.get_int("reverse", 0)},
      .clip = {float_in_c(node.attributes.get_float("clip", 0.0))},
      {", ".join(pointers)},
      .workspace = workspace,
  }};
  return dso_op_recurrent(&layer);
"""
    floats = directions * need.recurrent_workspace(1, hidden, states=states)
    return operator_of(
        "recurrent",
        body,
        tuple(inputs.values()),
        node.outputs,
        workspace=product((_FLOAT * floats, batch)),
        parts=["recurrent"],
        flops=2 * elements((steps, batch)) * prod(map(int, matrices)),
        before=INCLUDE + HELPER if check else "",
    )


def _check(number: int, batch: str, steps: str) -> str:
    """Return C statements that raise an IndexError for a length that the steps do not have."""
    return f"""\
  for (int64_t i = 0; i < {batch}; i++)
    if (x{number}[i] < 0 || x{number}[i] > {steps})
      return dso_outside("Recurrent: a length of a sequence", 0, {steps}, x{number}[i]);
"""
