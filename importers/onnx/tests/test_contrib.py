"""Operators of ONNX Runtime's tools, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import packer
import runtime

RANDOM = np.random.default_rng(1)


def floats(*shape: int) -> np.ndarray:
    """Random numbers."""
    return RANDOM.normal(size=shape).astype(np.float32)


def bytes_of(*shape: int) -> np.ndarray:
    """Random integers of 8 bits."""
    return RANDOM.integers(0, 255, shape).astype(np.uint8)


X = [bytes_of(2, 8, 6, 6), np.float32(0.05), np.uint8(120)]
Y = [bytes_of(2, 8, 6, 6), np.float32(0.03), np.uint8(3)]
TO = [np.float32(0.08), np.uint8(100)]
ROWS = floats(2, 5, 16)
# Inputs (None is left out), attributes, and the kind of the result; the first input is the model's.
CASES: dict[str, tuple[list[Any], dict[str, Any], Any]] = {
    "QLinearAdd": ([*X, *Y, *TO], {}, np.uint8),
    "QLinearMul": ([*X, *Y, *TO], {}, np.uint8),
    "QLinearSigmoid": ([*X, np.float32(1 / 256), np.uint8(0)], {}, np.uint8),
    "QLinearLeakyRelu": ([*X, *TO], {"alpha": 0.2}, np.uint8),
    "QLinearGlobalAveragePool": ([*X, *TO], {"channels_last": 0}, np.uint8),
    "QLinearAveragePool": ([*X, *TO], {"kernel_shape": [3, 3], "strides": [2, 2]}, np.uint8),
    "QLinearConcat": ([*TO, *X, *Y], {"axis": 1}, np.uint8),
    "QGemm": (
        [bytes_of(5, 16), *X[1:], bytes_of(16, 7), *Y[1:],
         RANDOM.integers(-99, 99, 7).astype(np.int32), np.float32(1), np.uint8(9)], {}, np.uint8,
    ),
    "QGemm of rows": (
        [bytes_of(5, 16), *X[1:], bytes_of(7, 16), floats(7) ** 2 / 9, bytes_of(7) // 2 + 64,
         RANDOM.integers(-99, 99, 7).astype(np.int32), np.float32(2), np.uint8(9)],
        {"transB": 1, "alpha": 0.5}, np.uint8,
    ),
    "FusedMatMul": ([floats(2, 5, 16), floats(2, 7, 16)], {"transB": 1, "alpha": 0.5}, np.float32),
    "FusedGemm": ([floats(5, 16), floats(16, 7), floats(7)], {"activation": "Relu"}, np.float32),
    "FusedConv": (
        [floats(1, 4, 6, 6), floats(8, 4, 3, 3), floats(8), floats(1, 8, 4, 4)],
        {"activation": "Relu", "kernel_shape": [3, 3]}, np.float32,
    ),
    "SkipLayerNormalization": (
        [ROWS, floats(2, 5, 16), floats(16), floats(16), floats(16)], {"epsilon": 1e-5}, np.float32,
    ),
    "SkipSimplifiedLayerNormalization": (
        [ROWS, floats(2, 5, 16), floats(16), floats(16)], {"epsilon": 1e-5}, np.float32,
    ),
    "SimplifiedLayerNormalization": ([ROWS, floats(16)], {"axis": -1, "epsilon": 1e-5}, np.float32),
    "SimplifiedLayerNormalization of small numbers": (
        [np.float32(1e-3) * ROWS, floats(16)], {}, np.float32,
    ),
    "EmbedLayerNormalization": (
        [np.array([[1, 3, 2]], np.int32), np.array([[0, 1, 1]], np.int32), floats(9, 16),
         floats(5, 16), floats(2, 16), floats(16), floats(16), None,
         np.array([[0, 1, 2]], np.int32)], {}, np.float32,
    ),
    "BiasGelu": ([ROWS, floats(16)], {}, np.float32),
    "FastGelu": ([ROWS, floats(16)], {}, np.float32),
    "Gelu": ([ROWS], {}, np.float32),
    "QuickGelu": ([ROWS], {"alpha": 1.5}, np.float32),
    "MultiHeadAttention": (
        [ROWS, floats(2, 7, 16), floats(2, 7, 16), floats(48), None, floats(2, 4, 5, 7)],
        {"num_heads": 4}, np.float32,
    ),
    "Attention": (
        [ROWS, floats(16, 48), floats(48), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)],
        {"num_heads": 4}, np.float32,
    ),
}  # fmt: skip


def model_of(kind: str, outputs: int = 1) -> tuple[Any, np.ndarray]:
    """A model of one node, whose other inputs are weights, with `outputs`; and its input."""
    inputs, attributes, result = CASES[kind]
    kind, *_ = kind.split(" ")
    names = ["" if one is None else f"v{i}" for i, one in enumerate(inputs)]
    index = 2 if kind == "QLinearConcat" else 0
    domain = "" if kind == "SimplifiedLayerNormalization" else "com.microsoft"
    results = [f"r{i}" for i in range(max(outputs, 1 + (kind == "EmbedLayerNormalization")))]
    node = helper.make_node(kind, names, results, "node", domain=domain, **attributes)
    weights = [
        numpy_helper.from_array(np.asarray(one), f"v{i}")
        for i, one in enumerate(inputs)
        if one is not None and i != index
    ]
    x = inputs[index]
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(one)) for one in (x.dtype, result)]
    values = [helper.make_tensor_value_info(f"v{index}", kinds[0], x.shape)]
    made = [helper.make_tensor_value_info(name, kinds[1], None) for name in results[:outputs]]
    graph = helper.make_graph([node], "g", values, made, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), x


@pytest.mark.parametrize("kind", CASES)
def test_an_operator_gives_what_onnx_runtime_gives(kind: str, tmp_path: Path) -> None:
    """Integers to one step of their scale."""
    proto, x = model_of(kind)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    path = packer.export_library(
        packer.from_onnx(proto), tmp_path / "m.so", build=packer.Build(cpu=())
    )
    found = runtime.load(path)["main"](x).numpy()
    assert found.shape == expected.shape and found.dtype == expected.dtype
    limit = 1 if expected.dtype == np.uint8 else 2e-5 if kind != "FastGelu" else 1e-4
    assert np.max(np.abs(found.astype(np.float64) - expected)) <= limit


HALVES = ["Attention", "FastGelu", "FusedMatMul", "Gelu", "SkipLayerNormalization"]


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_operator_computes_with_halves(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also rows of zeros by an epsilon that float16 does not have; batch and length are open."""
    inputs, attributes, _ = CASES[kind]
    halves = [
        one.astype(np.float16) if getattr(one, "dtype", None) == np.float32 else one
        for one in inputs
    ]
    if kind == "SkipLayerNormalization":
        halves[0] = halves[0] * np.float16(0)
        halves[1], halves[4] = halves[0], halves[4] * np.float16(0)
        attributes = {"epsilon": 1e-12}
    monkeypatch.setitem(CASES, kind, (halves, attributes, np.float16))
    proto, x = model_of(kind)
    if kind == "FastGelu":
        for axis, name in enumerate(("batch", "length")):
            proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    module, one_level = packer.from_onnx(proto), packer.Build(cpu=())
    path = packer.export_library(module, tmp_path / "m.so", build=one_level)
    found = runtime.load(path)["main"](x).numpy()
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


def test_what_has_no_row_is_refused_by_name() -> None:
    """An activation, an output, an attribute, an input."""
    proto, _ = model_of("FusedGemm")
    proto.graph.node[0].attribute[0].s = b"Mystery"
    with pytest.raises(
        packer.ExportError, match="'node'.* FusedGemm with the activation 'Mystery'"
    ):
        packer.from_onnx(proto)
    with pytest.raises(packer.ExportError, match="'node'.* output 1 of SkipLayerNormalization"):
        packer.from_onnx(model_of("SkipLayerNormalization", 2)[0])
    proto, _ = model_of("QLinearGlobalAveragePool")
    proto.graph.node[0].attribute[0].i = 1
    with pytest.raises(packer.ExportError, match="'node'.* with channels_last is not supported"):
        packer.from_onnx(proto)
    proto, _ = model_of("MultiHeadAttention")
    proto.graph.node[0].input[4] = "v1"
    with pytest.raises(packer.ExportError, match="key_padding_mask is not supported"):
        packer.from_onnx(proto)


@pytest.mark.parametrize("shape", [(2,), (2, 5, 5)])
@pytest.mark.parametrize("is_input", [False, True])
def test_another_mask_is_refused(shape: tuple[int, ...], is_input: bool) -> None:
    """It is not one of (batch, keys): lengths, or one of each query, also if a node makes it."""
    proto, _ = model_of("Attention")
    mask = next(one for one in proto.graph.initializer if one.name == "v3")
    mask.CopyFrom(numpy_helper.from_array(np.ones(shape, np.int32), "v3"))
    words = f"'node'.* Attention with input 3 of {len(shape)} axes, not 2"
    if is_input:  # its rank is then found by inference
        proto.graph.node[0].input[3] = "made"
        proto.graph.node.insert(0, helper.make_node("Neg", ["v3"], ["made"]))
        words = "perm"
    with pytest.raises(packer.ExportError, match=words):
        packer.from_onnx(proto)


def test_keys_by_heads_and_another_axis_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of ONNX Runtime has other rules for them."""
    x, scale = floats(2, 4, 16), floats(4, 16)
    heads = [x, *(floats(2, 4, 4, 4) for _ in "kv")]
    for kind, inputs, attributes, words in (
        ("MultiHeadAttention", heads, {"num_heads": 4}, "input 1 of 4 axes, not 3"),
        ("SimplifiedLayerNormalization", [x, scale], {"axis": 1}, "axis 1, which may not be"),
    ):
        monkeypatch.setitem(CASES, kind, (inputs, attributes, np.float32))
        with pytest.raises(packer.ExportError, match=f"'node'.* with {words}"):
            packer.from_onnx(model_of(kind)[0])
