"""Make decoder.onnx: a decoder of 5 million random parameters, with a cache for each layer."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

LAYERS, VOCABULARY, HIDDEN, INNER, HEADS = 4, 1000, 256, 1024, 4
SIZE = HIDDEN // HEADS
RANDOM = np.random.default_rng(0)
nodes, weights = [], []
inputs = [helper.make_tensor_value_info("input_ids", 7, [1, "seq"])]
outputs = [helper.make_tensor_value_info("logits", 1, [1, "seq", VOCABULARY])]


def node(kind: str, given: str, made: str, **attributes: object) -> str:
    """Add a node; return the name of its output."""
    nodes.append(helper.make_node(kind, given.split(), [made], name=made, **attributes))
    return made


def weight(name: str, *shape: int) -> str:
    """Add a matrix of random numbers, or ones."""
    scale = 2 / shape[0] ** 0.5
    array = RANDOM.normal(0, scale, shape) if len(shape) > 1 else np.ones(shape)
    weights.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    return name


def layer(x: str, n: int) -> str:
    """Add attention over the cache, then a perceptron; both are added to x."""
    normal = node("RMSNormalization", f"{x} {weight(f'{n}.norm', HIDDEN)}", f"{n}.normal")
    q, k, v = (
        node("MatMul", f"{normal} {weight(f'{n}.{one}.w', HIDDEN, HIDDEN)}", f"{n}.{one}")
        for one in "qkv"
    )
    cache = f"past.{n}.key past.{n}.value"
    inputs.extend(
        helper.make_tensor_value_info(name, 1, [1, HEADS, "past", SIZE]) for name in cache.split()
    )
    made = [f"{n}.attention", *(name.replace("past", "present") for name in cache.split())]
    outputs.extend(
        helper.make_tensor_value_info(name, 1, [1, HEADS, "all", SIZE]) for name in made[1:]
    )
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS, "is_causal": 1}
    given = [q, k, v, "", *cache.split()]
    nodes.append(helper.make_node("Attention", given, made, name=made[0], **heads))
    out = node("MatMul", f"{made[0]} {weight(f'{n}.o.w', HIDDEN, HIDDEN)}", f"{n}.out")
    x = node("Add", f"{x} {out}", f"{n}.sum")
    up = node("MatMul", f"{x} {weight(f'{n}.up.w', HIDDEN, INNER)}", f"{n}.up")
    down = node(
        "MatMul",
        f"{node('Gelu', up, f'{n}.gelu')} {weight(f'{n}.down.w', INNER, HIDDEN)}",
        f"{n}.down",
    )
    return node("Add", f"{x} {down}", f"{n}.y")


hidden = node("Gather", f"{weight('table', VOCABULARY, HIDDEN)} input_ids", "x")
for number in range(LAYERS):
    hidden = layer(hidden, number)
node("MatMul", f"{hidden} {weight('head', HIDDEN, VOCABULARY)}", "logits")
graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]), "decoder.onnx")
