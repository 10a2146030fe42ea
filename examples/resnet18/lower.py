"""Lowering: from layers to a graph of kernels, packed weights, and a plan that reuses memory.

The graph is TVM's graph JSON. Its nodes call the functions of kernels.c, which describes the
layouts. Batch normalisation, sum and ReLU are fused into the preceding convolution.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import prod

import numpy as np
from network import CLASSES, EPSILON, POOL, SIDE, STEM, Arrays, Conv, blocks

BLOCK = 16  # adjacent channels in an activation
OUTPUTS = 32  # adjacent output channels in a weight
FRAME, PICTURE_FRAME = 1, 3  # pixels of zeros on each side
CPU, OPENCL = 1, 4  # DLDeviceType

Shape = tuple[int, ...]


@dataclass
class Node:
    """One entry of the graph: an input, a weight, or a call of a kernel."""

    name: str
    shape: Shape
    function: str = ""  # empty for an input or a weight
    inputs: list[str] = field(default_factory=list)


def lower(parameters: Arrays, device_type: int = CPU) -> tuple[str, Arrays]:
    """Return the graph JSON for a kind of device, and the weights that it names, packed."""
    nodes, weights = _nodes(), _weights(parameters)
    return graph_json(nodes, weights, device_type), weights


def fold(conv: Conv, parameters: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Fold batch normalisation into weight and bias; computed in double precision."""
    of = {
        what: parameters[f"{conv.name}.{what}"].astype(np.float64)
        for what in ("weight", "gamma", "beta", "mean", "variance")
    }
    scale = of["gamma"] / np.sqrt(of["variance"] + EPSILON)
    return of["weight"] * scale[:, None, None, None], of["beta"] - of["mean"] * scale


def pack(weight: np.ndarray) -> np.ndarray:
    """Turn (O, I, K, K) into (O/32, I/B, K, K, B, 32); B is 16, or 1 for a picture's 3 channels."""
    outputs, inputs, height, width = weight.shape
    block = 1 if inputs % BLOCK else BLOCK
    split = weight.reshape(outputs // OUTPUTS, OUTPUTS, inputs // block, block, height, width)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1), dtype=np.float32)


def _weights(parameters: Arrays) -> Arrays:
    weights = {}
    for conv in (STEM, *blocks()):
        weight, bias = fold(conv, parameters)
        weights[f"{conv.name}.weight"] = pack(weight)
        weights[f"{conv.name}.bias"] = bias.astype(np.float32)
    weights["dense.weight"] = np.ascontiguousarray(parameters["dense.weight"].T)
    weights["dense.bias"] = parameters["dense.bias"]
    return weights


def _nodes() -> list[Node]:
    """All calls, in order of execution."""
    side = SIDE + 2 * PICTURE_FRAME
    nodes = [
        Node("data", (1, 3, SIDE, SIDE)),
        Node("framed", (3, side, side, 1), "frame_picture", ["data"]),
        _call(STEM, "framed", SIDE // 2),
        Node(POOL, _activation(64, SIDE // 4), "max_pool", [STEM.name]),
    ]
    sides = {POOL: SIDE // 4}
    for conv in blocks():
        sides[conv.name] = sides[conv.source] // conv.stride
        nodes.append(_call(conv, conv.source, sides[conv.name]))
    dense = ["average", "dense.weight", "dense.bias"]
    return [
        *nodes,
        Node("average", (1, 512), "average_pool", [nodes[-1].name]),
        Node("scores", (1, CLASSES), "dense", dense),
    ]


def _call(conv: Conv, source: str, side: int) -> Node:
    inputs = [source, f"{conv.name}.weight", f"{conv.name}.bias"]
    inputs += [conv.residual] if conv.residual else []
    function = "conv" + "_add" * bool(conv.residual) + "_relu" * conv.relu
    return Node(conv.name, _activation(conv.channels[1], side), function, inputs)


def _activation(channels: int, side: int) -> Shape:
    return (channels // BLOCK, side + 2 * FRAME, side + 2 * FRAME, BLOCK)


def graph_json(calls: list[Node], weights: Arrays, device_type: int) -> str:
    """Write the weights and then the calls as TVM's graph JSON."""
    nodes = [Node(name, array.shape) for name, array in weights.items()] + calls
    index = {node.name: i for i, node in enumerate(nodes)}
    graph = {
        "nodes": [_node_json(node, index) for node in nodes],
        "arg_nodes": [i for i, node in enumerate(nodes) if not node.function],
        "heads": [[len(nodes) - 1, 0, 0]],
        "node_row_ptr": list(range(len(nodes) + 1)),
        "attrs": {
            "storage_id": ["list_int", plan_storage(nodes)],
            "shape": ["list_shape", [list(node.shape) for node in nodes]],
            "dltype": ["list_str", ["float32"] * len(nodes)],
            "device_index": ["list_int", [device_type] * len(nodes)],
        },
    }
    return json.dumps(graph)


def _node_json(node: Node, index: dict[str, int]) -> dict[str, object]:
    if not node.function:
        return {"op": "null", "name": node.name, "inputs": []}
    attributes = {
        "func_name": node.function,
        "num_inputs": str(len(node.inputs)),
        "num_outputs": "1",
        "flatten_data": "0",
    }
    inputs = [[index[name], 0, 0] for name in node.inputs]
    return {"op": "tvm_op", "name": node.name, "attrs": attributes, "inputs": inputs}


def plan_storage(nodes: list[Node]) -> list[int]:
    """Give each node a storage: the best fit among storages that are free again, else a new one.

    Inputs and weights have separate storages.
    """
    last_use = {name: i for i, node in enumerate(nodes) for name in node.inputs}
    sizes: list[int] = []
    of: dict[str, int] = {}
    free: list[int] = []
    for i, node in enumerate(nodes):
        size = prod(node.shape)
        best = min(free, key=lambda storage: abs(sizes[storage] - size), default=None)
        if best is None or not node.function:
            sizes.append(size)
            of[node.name] = len(sizes) - 1
        else:
            free.remove(best)
            sizes[best] = max(sizes[best], size)
            of[node.name] = best
        done = {name for name in node.inputs if last_use[name] == i}
        free += [of[other.name] for other in nodes[:i] if other.function and other.name in done]
    return [of[node.name] for node in nodes]
