"""A small encoder and decoder as optimum writes them: in four files, or with a merged decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

_HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
_WEIGHTS = """<float[9, 4] table = {TABLE}, float[4, 9] out = {OUT}, float[4, 4] turn = {TURN},
   int64[1] axis = {1}, int64[1] last = {2}>"""
_ENCODER = """encoder (int64[1, source] input_ids, int64[1, source] attention_mask)
  => (float[1, source, 4] last_hidden_state)
  WEIGHTS {
  x = Gather(table, input_ids)
  last_hidden_state = Tanh(x)
}"""
_INPUTS = "int64[1, source] encoder_attention_mask, int64[1, seq] input_ids"
_LOGITS = """
  x = Gather(table, input_ids)
  OWN
  own = ReduceSum(rows, axis)
  kept = Cast<to = 1>(encoder_attention_mask)
  column = Unsqueeze(kept, last)
  masked = Mul(cross, column)
  seen = ReduceSum(masked, axis)
  both = Add(own, seen)
  all = Add(both, x)
  logits = MatMul(all, out)
"""
_FIRST = f"""first ({_INPUTS}, float[1, source, 4] encoder_hidden_states)
  => (float[1, seq, 9] logits, float[1, seq, 4] present_0_own, float[1, source, 4] present_0_cross)
  WEIGHTS {{
  cross = MatMul(encoder_hidden_states, turn)
  {_LOGITS.replace("OWN", "rows = Identity(x)")}
  present_0_own = Identity(rows)
  present_0_cross = Identity(cross)
}}"""
_LATER = f"""later ({_INPUTS}, float[1, past, 4] past_0_own, float[1, source, 4] past_0_cross)
  => (float[1, seq, 9] logits, float[1, total, 4] present_0_own)
  WEIGHTS {{
  cross = Identity(past_0_cross)
  {_LOGITS.replace("OWN", "rows = Concat<axis = 1>(past_0_own, x)")}
  present_0_own = Identity(rows)
}}"""

_READER = """reader (float[1, past, 4] past_0_own) => (float[1, 4] sum)
  WEIGHTS { sum = ReduceSum<keepdims = 0>(past_0_own, axis) }"""


def parsed(text: str) -> onnx.ModelProto:
    """Parse a model, with weights that all of them share."""
    random = np.random.default_rng(5)
    weights = _WEIGHTS
    for name, size in (("TABLE", 36), ("OUT", 36), ("TURN", 16)):
        numbers = random.normal(size=size).astype(np.float32).tolist()
        weights = weights.replace(name, ", ".join(map(repr, numbers)))
    return onnx.parser.parse_model(_HEAD + text.replace("WEIGHTS", weights))


def models() -> dict[str, onnx.ModelProto]:
    """The three models, by the names of their files, and one that only reads the cache."""
    return {
        "reader": parsed(_READER),
        "encoder_model": parsed(_ENCODER),
        "decoder_model": parsed(_FIRST),
        "decoder_with_past_model": parsed(_LATER),
    }


def merged() -> onnx.ModelProto:
    """The decoder whose branches are the two graphs; later calls return no cross attention."""
    first, later = parsed(_FIRST), parsed(_LATER)
    empty = helper.make_tensor("", TensorProto.FLOAT, [0, 1, 4], [])
    later.graph.node.append(helper.make_node("Constant", [], ["present_0_cross"], value=empty))
    outputs = [*first.graph.output]
    later.graph.output.append(outputs[-1])
    inputs = {value.name: value for one in (first, later) for value in one.graph.input}
    branches = {}
    for name, made in (("then_branch", later), ("else_branch", first)):
        nodes = [*made.graph.node]
        branches[name] = helper.make_graph(nodes, name, [], [*made.graph.output])
    use = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    node = helper.make_node("If", ["use_cache_branch"], [one.name for one in outputs], **branches)
    weights = [*first.graph.initializer]
    graph = helper.make_graph([node], "merged", [*inputs.values(), use], outputs, weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def write(folder: Path, kind: str) -> Path:
    """Write the files of a kind, ``"pair"`` or ``"merged"``."""
    files = models()
    del files["reader"]
    if kind == "merged":
        files = {"encoder_model": files["encoder_model"], "decoder_model_merged": merged()}
    folder.mkdir(exist_ok=True)
    for name, made in files.items():
        onnx.save(made, folder / f"{name}.onnx")
    return folder
