"""Five networks as ONNX with random weights, node by node as exporters write them, nothing folded.

Each function returns a `ModelProto` with one input, "data", and one output, "result". `batch` may
be a name; the batch is then symbolic. The same arguments give the same weights. These are scaled
so that activations keep their size: the result depends on every layer, but has no meaning.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from .network import OPSET, Batch, Network


def resnet18(side: int = 224, classes: int = 1000, batch: Batch = 1) -> onnx.ModelProto:
    """ResNet-18 (He et al., 2015) of images with `side` pixels."""
    return _resnet("resnet18", (2, 2, 2, 2), 1, side, classes, batch)


def resnet50(side: int = 224, classes: int = 1000, batch: Batch = 1) -> onnx.ModelProto:
    """ResNet-50, with the stride in the 3x3 convolution."""
    return _resnet("resnet50", (3, 4, 6, 3), 4, side, classes, batch)


def mobilenet_v2(side: int = 224, classes: int = 1000, batch: Batch = 1) -> onnx.ModelProto:
    """MobileNetV2 (Sandler et al., 2018): depthwise convolutions and Clip."""
    net = Network("mobilenet_v2")
    x = _conv_clip(net, "features.0", "data", 3, 32, stride=2)
    channels, block = 32, 1
    for factor, outputs, repeats, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for i in range(repeats):
            name, inner, step = f"features.{block}", channels * factor, stride if i == 0 else 1
            y = x if factor == 1 else _conv_clip(net, f"{name}.0", x, channels, inner, 1)
            y = _conv_clip(net, f"{name}.1", y, inner, inner, 3, step, groups=inner)
            y = net.conv_norm(f"{name}.2", y, inner, outputs, 1, gain=1.0)
            x = net.node("Add", x, y) if step == 1 and channels == outputs else y
            channels, block = outputs, block + 1
    x = _conv_clip(net, f"features.{block}", x, channels, 1280, 1)
    return net.finish(_classify(net, x, 1280, classes), (batch, 3, side, side), (batch, classes))


def encoder(
    layers: int = 6,
    rows: int = 128,
    hidden: int = 256,
    heads: int = 4,
    inner: int = 1024,
    batch: Batch = 1,
    decomposed: bool = True,
) -> onnx.ModelProto:
    """Make a transformer encoder: attention and a GELU network in each layer, LayerNorm after both.

    LayerNorm and GELU are the small operators that exporters write up to opset 17, or, if not
    `decomposed`, the operators of opset 20.
    """
    net = Network("encoder", OPSET if decomposed else 20)
    size, x = hidden // heads, "data"
    for layer in range(layers):
        name = f"layers.{layer}"
        q, k, v = (
            net.reshape(net.linear(f"{name}.{part}", x, hidden, hidden), batch, rows, heads, size)
            for part in ("query", "key", "value")
        )
        q = net.node("Transpose", q, perm=[0, 2, 1, 3])
        k = net.node("Transpose", k, perm=[0, 2, 3, 1])
        v = net.node("Transpose", v, perm=[0, 2, 1, 3])
        scale = size**-0.25
        q, k = (net.node("Mul", side, net.scalar(scale)) for side in (q, k))
        scores = net.node("Softmax", net.node("MatMul", q, k), axis=-1)
        y = net.node("Transpose", net.node("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = net.reshape(y, batch, rows, hidden)
        y = net.linear(f"{name}.output", y, hidden, hidden)
        x = net.layer_norm(f"{name}.norm1", net.node("Add", x, y), hidden, decomposed)
        y = net.gelu(net.linear(f"{name}.up", x, hidden, inner), decomposed)
        y = net.linear(f"{name}.down", y, inner, hidden)
        x = net.layer_norm(f"{name}.norm2", net.node("Add", x, y), hidden, decomposed)
    return net.finish(x, (batch, rows, hidden), (batch, rows, hidden))


def unet(
    side: int = 128,
    channels: tuple[int, ...] = (16, 32, 64, 128),
    classes: int = 2,
    batch: Batch = 1,
    resize: bool = False,
) -> onnx.ModelProto:
    """Make a U-Net (Ronneberger et al., 2015): down by MaxPool, up by ConvTranspose or Resize."""
    net = Network("unet")
    x, inputs, kept = "data", 3, []
    for level, outputs in enumerate(channels):
        if level:
            kept.append((x, inputs))
            x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x, inputs = _conv_twice(net, f"down.{level}", x, inputs, outputs), outputs
    for level, (skipped, outputs) in reversed(list(enumerate(kept))):
        x = net.up(f"up.{level}.0", x, inputs, outputs, resize)
        x = net.node("Concat", skipped, x, axis=1)
        x, inputs = _conv_twice(net, f"up.{level}", x, 2 * outputs, outputs), outputs
    x = net.conv("out", x, inputs, classes, 1, bias=True, gain=1.0)
    return net.finish(x, (batch, 3, side, side), (batch, classes, side, side))


MODELS: dict[str, Callable[..., onnx.ModelProto]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "encoder": encoder,
    "unet": unet,
}


def sample(model: onnx.ModelProto, batch: int = 1, seed: int = 1) -> np.ndarray:
    """Return a random input of a model; `batch` is the extent of a symbolic batch."""
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = tuple(dim.dim_value or batch for dim in dims)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _resnet(
    name: str, repeats: tuple[int, ...], widen: int, side: int, classes: int, batch: Batch
) -> onnx.ModelProto:
    net = Network(name)
    x = net.node("Relu", net.conv_norm("stem", "data", 3, 64, 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for stage, count in enumerate(repeats):
        inner = 64 << stage
        for i in range(count):
            stride = 2 if stage and i == 0 else 1
            x = _residual(net, f"layer{stage + 1}.{i}", x, inputs, inner, widen, stride)
            inputs = inner * widen
    return net.finish(_classify(net, x, inputs, classes), (batch, 3, side, side), (batch, classes))


def _residual(
    net: Network, name: str, x: str, inputs: int, inner: int, widen: int, stride: int
) -> str:
    """Add two convolutions of 3x3, or one between two of 1x1, and the sum with their input."""
    outputs, y = inner * widen, x
    if widen == 1:
        y = net.node("Relu", net.conv_norm(f"{name}.1", y, inputs, inner, 3, stride))
        y = net.conv_norm(f"{name}.2", y, inner, outputs, 3, scale=0.5)
    else:
        y = net.node("Relu", net.conv_norm(f"{name}.1", y, inputs, inner, 1))
        y = net.node("Relu", net.conv_norm(f"{name}.2", y, inner, inner, 3, stride))
        y = net.conv_norm(f"{name}.3", y, inner, outputs, 1, scale=0.5)
    if inputs != outputs:
        x = net.conv_norm(f"{name}.shortcut", x, inputs, outputs, 1, stride, gain=1.0)
    return net.node("Relu", net.node("Add", y, x))


def _conv_clip(
    net: Network, name: str, x: str, inputs: int, outputs: int, window: int = 3, stride: int = 1,
    groups: int = 1,
) -> str:  # fmt: skip
    x = net.conv_norm(name, x, inputs, outputs, window, stride, groups)
    return net.node("Clip", x, net.scalar(0.0), net.scalar(6.0))


def _conv_twice(net: Network, name: str, x: str, inputs: int, outputs: int) -> str:
    x = net.node("Relu", net.conv_norm(f"{name}.1", x, inputs, outputs, 3))
    return net.node("Relu", net.conv_norm(f"{name}.2", x, outputs, outputs, 3))


def _classify(net: Network, x: str, inputs: int, classes: int) -> str:
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    weight = net.normal("classify.weight", classes, inputs, deviation=inputs**-0.5)
    bias = net.normal("classify.bias", classes, deviation=0.1)
    return net.node("Gemm", x, weight, bias, alpha=1.0, beta=1.0, transB=1)
