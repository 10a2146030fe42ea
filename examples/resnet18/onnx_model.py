"""The network as ONNX, for ONNX Runtime."""

from __future__ import annotations

import onnx
from network import EPSILON, POOL, SIDE, STEM, Arrays, Conv, blocks
from onnx import TensorProto, helper, numpy_helper


def onnx_model(arrays: Arrays) -> bytes:
    """Write the network as ONNX, node by node, nothing folded: input "data", output "scores"."""
    nodes = conv_nodes(STEM)
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes.append(helper.make_node("MaxPool", [STEM.name], [POOL], **pool))
    for conv in blocks():
        nodes += conv_nodes(conv)
    nodes += [
        helper.make_node("GlobalAveragePool", [nodes[-1].output[0]], ["average"]),
        helper.make_node("Flatten", ["average"], ["features"]),
        helper.make_node("Gemm", ["features", "dense.weight", "dense.bias"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "resnet18",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1000])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def conv_nodes(conv: Conv) -> list[onnx.NodeProto]:
    """Convolution, batch normalisation, and the sum and ReLU after them."""
    sides = {"strides": [conv.stride] * 2, "pads": [conv.padding] * 4}
    batch_norm = [f"{conv.name}.{what}" for what in ("gamma", "beta", "mean", "variance")]
    steps: list[tuple[str, list[str], dict[str, object]]] = [
        ("Conv", [conv.source, f"{conv.name}.weight"], sides),
        ("BatchNormalization", batch_norm, {"epsilon": EPSILON}),
    ]
    if conv.residual:
        steps.append(("Add", [conv.residual], {}))
    if conv.relu:
        steps.append(("Relu", [], {}))
    nodes, result = [], ""
    for i, (op, inputs, attributes) in enumerate(steps):
        name = conv.name if i == len(steps) - 1 else f"{conv.name}.{op}"
        nodes.append(helper.make_node(op, [result, *inputs][not result :], [name], **attributes))
        result = name
    return nodes
