"""An ONNX graph that grows by a node at a time, with the layers that networks have."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17  # before Gelu is an operator
EPSILON = 1e-5
Batch = int | str


class Network:
    """A graph that grows by a node at a time; values have the names of their nodes."""

    def __init__(self, name: str, opset: int = OPSET) -> None:
        self._name, self._opset = name, opset
        self._random = np.random.default_rng(len(name))
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = f"/{op}_{len(self._nodes)}"
        result = f"{name}_output_0"
        self._nodes.append(helper.make_node(op, inputs, [result], name, **attributes))
        return result

    def normal(self, name: str, *shape: int, deviation: float, mean: float = 0.0) -> str:
        """Add a weight of normal random numbers."""
        return self.weight(name, self._random.normal(mean, deviation, shape).astype(np.float32))

    def uniform(self, name: str, *shape: int, low: float, high: float) -> str:
        """Add a weight of uniform random numbers."""
        return self.weight(name, self._random.uniform(low, high, shape).astype(np.float32))

    def weight(self, name: str, array: np.ndarray) -> str:
        """Add an initialiser."""
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, value: float) -> str:
        """Add a constant of no dimensions."""
        return self.node("Constant", value=numpy_helper.from_array(np.array(value, np.float32)))

    def conv(
        self, name: str, x: str, inputs: int, outputs: int, window: int, stride: int = 1,
        groups: int = 1, bias: bool = False, gain: float = 2.0,
    ) -> str:  # fmt: skip
        """Add a convolution that keeps extents, but for the stride."""
        shape = (outputs, inputs // groups, window, window)
        weight = self.normal(f"{name}.weight", *shape, deviation=(gain / prod(shape[1:])) ** 0.5)
        more = [self.normal(f"{name}.bias", outputs, deviation=0.1)] if bias else []
        sides = {"kernel_shape": [window] * 2, "strides": [stride] * 2, "pads": [window // 2] * 4}
        return self.node("Conv", x, weight, *more, dilations=[1, 1], group=groups, **sides)

    def batch_norm(self, name: str, x: str, channels: int, scale: float = 1.0) -> str:
        """Add a batch normalisation, as in inference."""
        gamma = self.uniform(f"{name}.weight", channels, low=0.75 * scale, high=1.25 * scale)
        beta = self.normal(f"{name}.bias", channels, deviation=0.1)
        mean = self.normal(f"{name}.running_mean", channels, deviation=0.1)
        variance = self.uniform(f"{name}.running_var", channels, low=0.75, high=1.25)
        return self.node("BatchNormalization", x, gamma, beta, mean, variance, epsilon=EPSILON)

    def conv_norm(
        self, name: str, x: str, inputs: int, outputs: int, window: int, stride: int = 1,
        groups: int = 1, gain: float = 2.0, scale: float = 1.0,
    ) -> str:  # fmt: skip
        """Add a convolution and its batch normalisation."""
        x = self.conv(f"{name}.conv", x, inputs, outputs, window, stride, groups, gain=gain)
        return self.batch_norm(f"{name}.norm", x, outputs, scale)

    def linear(self, name: str, x: str, inputs: int, outputs: int) -> str:
        """Add a product with a weight, and a bias, as exporters write it for three dimensions."""
        weight = self.normal(f"{name}.weight", inputs, outputs, deviation=inputs**-0.5)
        bias = self.normal(f"{name}.bias", outputs, deviation=0.1)
        return self.node("Add", bias, self.node("MatMul", x, weight))

    def reshape(self, x: str, batch: Batch, *extents: int) -> str:
        """Add a reshape; a symbolic batch is that of `x`."""
        first = batch if isinstance(batch, int) else 0  # 0: the extent of the input
        shape = np.array((first, *extents), np.int64)
        return self.node("Reshape", x, self.node("Constant", value=numpy_helper.from_array(shape)))

    def layer_norm(self, name: str, x: str, channels: int, decomposed: bool) -> str:
        """Add a layer normalisation over the last axis."""
        scale = self.uniform(f"{name}.weight", channels, low=0.75, high=1.25)
        bias = self.normal(f"{name}.bias", channels, deviation=0.1)
        if not decomposed:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        square = self.node("Pow", centred, self.scalar(2.0))
        variance = self.node("ReduceMean", square, axes=[-1])
        root = self.node("Sqrt", self.node("Add", variance, self.scalar(EPSILON)))
        return self.node("Add", self.node("Mul", self.node("Div", centred, root), scale), bias)

    def gelu(self, x: str, decomposed: bool) -> str:
        """Add GELU by the error function."""
        if not decomposed:
            return self.node("Gelu", x)
        erf = self.node("Erf", self.node("Div", x, self.scalar(2**0.5)))
        product = self.node("Mul", x, self.node("Add", erf, self.scalar(1.0)))
        return self.node("Mul", product, self.scalar(0.5))

    def up(self, name: str, x: str, inputs: int, outputs: int, resize: bool) -> str:
        """Double the extents of an image."""
        if resize:
            scales = self.weight(f"{name}.scales", np.array([1, 1, 2, 2], np.float32))
            steps = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            x = self.node("Resize", x, "", scales, mode="nearest", **steps)
            return self.conv(name, x, inputs, outputs, 1, bias=True, gain=1.0)
        weight = self.normal(f"{name}.weight", inputs, outputs, 2, 2, deviation=inputs**-0.5)
        bias = self.normal(f"{name}.bias", outputs, deviation=0.1)
        return self.node(
            "ConvTranspose", x, weight, bias, kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4
        )

    def finish(
        self, result: str, shape: tuple[Batch, ...], out: tuple[Batch, ...]
    ) -> onnx.ModelProto:
        """Make the model: input "data", output "result"."""
        self._nodes[-1].output[0] = "result"
        assert result == f"{self._nodes[-1].name}_output_0"
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("result", TensorProto.FLOAT, out)],
            self._weights,
        )
        opset = helper.make_opsetid("", self._opset)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        return model
