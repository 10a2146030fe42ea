"""Small networks, quantised by ONNX Runtime's tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

CNN = """
<ir_version: 8, opset_import: ["" : 17]>
cnn (float[1,3,16,18] x) => (float[1,5] y) {
  a = Conv<pads=[1,1,1,1]>(x, w40x3x3x3, b40)
  b = Relu(a)
  c = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
  d = Conv<pads=[1,1,1,1], group=40>(c, w40x1x3x3, c40)
  e = Clip(d, zero, six)
  f = Conv(e, w24x40x1x1, b24)
  g = Conv<pads=[1,1,1,1]>(f, w24x24x3x3, c24)
  h = Add(f, g)
  i = Relu(h)
  j = GlobalAveragePool(i)
  k = Flatten(j)
  y = Gemm<transB=1>(k, w5x24, b5)
}
"""
ENCODER = """
<ir_version: 8, opset_import: ["" : 17]>
encoder (float[1,12,32] x) => (float[1,12,32] y) {
  q0 = MatMul(x, w32x32)
  q1 = Add(q0, b32)
  q2 = Reshape(q1, heads)
  q = Transpose<perm=[0,2,1,3]>(q2)
  k0 = MatMul(x, v32x32)
  k1 = Reshape(k0, heads)
  k = Transpose<perm=[0,2,3,1]>(k1)
  v0 = MatMul(x, u32x32)
  v1 = Reshape(v0, heads)
  v = Transpose<perm=[0,2,1,3]>(v1)
  s0 = MatMul(q, k)
  s = Softmax<axis=-1>(s0)
  o0 = MatMul(s, v)
  o1 = Transpose<perm=[0,2,1,3]>(o0)
  o2 = Reshape(o1, rows)
  o3 = MatMul(o2, t32x32)
  o = Add(o3, x)
  f0 = MatMul(o, w32x64)
  f1 = Add(f0, b64)
  f2 = Relu(f1)
  f3 = MatMul(f2, w64x32)
  y = Add(f3, o)
}
"""
_GIVEN = {
    "zero": np.float32(0),
    "six": np.float32(6),
    "heads": np.array([1, 12, 4, 8]),
    "rows": np.array([1, 12, 32]),
}


def network(text: str) -> onnx.ModelProto:
    """Parse a network; the names of its weights are a letter and their shape."""
    model = parser.parse_model(text)
    random = np.random.default_rng(1)
    made = {name for node in model.graph.node for name in node.output}
    names = {name for node in model.graph.node for name in node.input} - made - {"x"}
    for name in sorted(names):
        array = _GIVEN.get(name)
        if array is None:
            shape = [int(extent) for extent in name[1:].split("x")]
            inner = float(np.prod(shape[1:]) if len(shape) in (1, 4) else shape[0])
            array = random.normal(0, inner**-0.5, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def samples(model: onnx.ModelProto, count: int = 4) -> list[np.ndarray]:
    """Return random inputs."""
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    random = np.random.default_rng(2)
    return [random.normal(size=shape).astype(np.float32) for _ in range(count)]


class _Reader:
    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._left: Iterator[np.ndarray] = iter(arrays)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next input, as the tool asks for it."""
        found = next(self._left, None)
        return None if found is None else {"x": found}


def quantised(text: str, kind: str, folder: Path) -> onnx.ModelProto:
    """Quantise a network.

    Parameters
    ----------
    text : str
        `CNN` or `ENCODER`.
    kind : {"QDQ", "QOperator", "dynamic"}
        QDQ has DequantizeLinear and QuantizeLinear around each operator, and weights with a scale
        for each channel; QOperator has operators of integers; in a dynamic one each call computes
        the scales of its activations.
    """
    from onnxruntime import quantization as tool

    model = network(text)
    source, path = folder / "float.onnx", folder / "quantised.onnx"
    onnx.save(model, source)
    if kind == "dynamic":
        tool.quantize_dynamic(source, path, op_types_to_quantize=["MatMul"])
        return onnx.load(path)
    reader = type("Reader", (_Reader, tool.CalibrationDataReader), {})(samples(model))
    tool.quantize_static(
        source,
        path,
        reader,
        quant_format=tool.QuantFormat[kind],
        per_channel=kind == "QDQ",
        op_types_to_quantize=None if kind == "QDQ" else ["Conv", "MatMul"],
        weight_type=tool.QuantType.QInt8,
        activation_type=tool.QuantType.QUInt8,
    )
    return onnx.load(path)
