"""Models with open extents: each operator, any shape, beside ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import packer
import runtime

HEAD = '<ir_version: 10, opset_import: ["" : 23]> g '
# A model with open axes a and b; more inputs have the same names.
MODELS = {
    "Add": "(float[a, b] x, float[b] z) => (float[p, q] y) { y = Add (x, z) }",
    "Add of ints": "(int64[a, b] x, int64[a, 1] z) => (int64[p, q] y) { y = Add (x, z) }",
    "And": "(bool[a, 1, b] x, bool[b, 1] z) => (bool[p, q, r] y) { y = And (x, z) }",
    "Where": "(bool[a, 1] x, float[b] z) => (float[p, q] y)"
    " <float n = {-1}> { y = Where (x, z, n) }",
    "Cast": "(int64[a, b] x) => (float[p, q] y) { y = Cast <to = 1> (x) }",
    "Cast to bool": "(float[a, b] x) => (bool[p, q] y) { y = Cast <to = 9> (x) }",
    "Div": "(int32[a, b] x) => (int32[p, q] y) <int32 n = {-3}> { y = Div (x, n) }",
    "Mod": "(int32[a, b] x) => (int32[p, q] y) <int32 n = {-3}> { y = Mod (x, n) }",
    "Max": "(double[a, b] x, double[b] z) => (double[p, q] y) { y = Max (x, z) }",
    "IsNaN": "(float[a, b] x) => (bool[p, q] y) { r = Sqrt (x) y = IsNaN (r) }",
    "Erf": "(double[a, b] x) => (double[p, q] y) { y = Erf (x) }",
    "Clip": "(int64[a, b] x) => (int64[p, q] y) <int64 l = {-1}, int64 h = {2}>"
    " { y = Clip (x, l, h) }",
    "Pow": "(double[a, b] x) => (double[p, q] y) <double n = {2}> { y = Pow (x, n) }",
    "Transpose": "(int64[a, 3, b] x) => (int64[p, q, r] y)"
    " { y = Transpose <perm = [2, 0, 1]> (x) }",
    "Expand": "(float[a, 1] x, float[b] z) => (float[p, q] y)"
    " { s = Shape (z) t = Shape <start = 0, end = 1> (x) u = Concat <axis = 0> (t, s)"
    " y = Expand (x, u) }",
    "Tile": "(float[a, b] x) => (float[p, q] y) <int64[2] n = {2, 3}> { y = Tile (x, n) }",
    "Concat": "(float[a, b] x, float[a, 2] z) => (float[p, q] y)"
    " { y = Concat <axis = 1> (x, z, x) }",
    "Concat of rows": "(int64[a, b] x, int64[2, b] z) => (int64[p, q] y)"
    " { y = Concat <axis = 0> (z, x) }",
    "Split": "(float[a, 6, b] x) => (float[p, q, r] y) <int64[2] n = {2, 4}>"
    " { u, v = Split <axis = 1> (x, n) w = Neg (u) y = Concat <axis = 1> (v, w) }",
    "Slice": "(float[a, b] x) => (float[p, q] y)"
    " <int64[1] s = {1}, int64[1] e = {9223372036854775807}, int64[1] i = {1}>"
    " { y = Slice (x, s, e, i) }",
    "Slice back": "(float[a, b] x) => (float[p, q] y)"
    " <int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, int64[1] i = {0}, int64[1] n = {-1}>"
    " { y = Slice (x, s, e, i, n) }",
    "Slice of the first": "(float[a, b] x) => (float[p, q] y)"
    " <int64[2] s = {0, 0}, int64[2] e = {1000, 2}> { y = Slice (x, s, e) }",
    "Slice of the last": "(float[a, b] x) => (float[p, q] y)"
    " <int64[2] s = {-2, 3}, int64[2] e = {9, 0}, int64[2] i = {0, 1}, int64[2] n = {1, -1}>"
    " { y = Slice (x, s, e, i, n) }",
    "Slice of a table": "(float[a, b] x) => (float[p, q] y)"
    " <int64[1] s = {0}, int64[1] i = {1}, float[1, 7] t = {0, 1, 2, 3, 4, 5, 6}>"
    " { e = Shape <start = 1> (x) u = Slice (t, s, e, i) y = Add (x, u) }",
    "Gather": "(float[a, b] x) => (float[p, q] y) <int64[3] i = {0, -1, 0}>"
    " { y = Gather <axis = 1> (x, i) }",
    "Gather of rows": "(int64[a, b] x) => (float[p, q, r] y)"
    " <float[8, 2] t = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}>"
    " { y = Gather (t, x) }",
    "GatherElements": "(float[a, b] x, int64[a, b] z) => (float[p, q] y)"
    " { n = Sub (z, z) y = GatherElements <axis = 1> (x, n) }",
    "GatherND": "(float[a, b] x) => (float[p] y) <int64[2, 2] i = {0, 0, -1, -1}>"
    " { y = GatherND (x, i) }",
    "Range": "(float[a, b] x) => (int64[p] y) <int64 z = {0}, int64 d = {2}>"
    " { s = Shape <start = 1> (x) n = Squeeze (s) y = Range (z, n, d) }",
    "Size": "(float[a, b] x) => (int64 y) { y = Size (x) }",
    "ConstantOfShape": "(float[a, b] x) => (float[p, q] y) { s = Shape (x)"
    " y = ConstantOfShape <value = float[1] {2.5}> (s) }",
    "ReduceMean": "(double[a, b] x) => (double[p, q] y) <int64[1] i = {1}>"
    " { y = ReduceMean (x, i) }",
    "ReduceSum": "(int64[a, 3, b] x) => (int64[p] y) <int64[2] i = {0, 2}>"
    " { y = ReduceSum <keepdims = 0> (x, i) }",
    "ReduceMax": "(int64[a, b] x) => (int64[p, q] y) <int64[1] i = {0}> { y = ReduceMax (x, i) }",
    "ReduceL2": "(double[a, b] x) => (double[p] y) <int64[1] i = {1}>"
    " { y = ReduceL2 <keepdims = 0> (x, i) }",
    "ArgMax": "(float[a, b] x) => (int64[p, q] y) { y = ArgMax <axis = 1> (x) }",
    "CumSum": "(int64[a, b] x) => (int64[p, q] y) <int64 i = {1}>"
    " { y = CumSum <exclusive = 1, reverse = 1> (x, i) }",
    "Softmax": "(double[a, b] x) => (double[p, q] y) { y = Softmax <axis = 0> (x) }",
    "LogSoftmax": "(float[a, b] x) => (float[p, q] y) { y = LogSoftmax <axis = 1> (x) }",
    "Trilu": "(float[a, b] x) => (float[p, q] y) <int64 k = {1}> { y = Trilu <upper = 0> (x, k) }",
    "Conv": "(float[a, 2, b] x) => (float[p, q, r] y)"
    " <float[4, 1, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] c = {1, 2, 3, 4}>"
    " { y = Conv <group = 2, pads = [2, 1], dilations = [1], strides = [1]> (x, w, c) }",
    "MaxPool": "(float[a, 2, b] x) => (float[p, q, r] y)"
    " { y = MaxPool <kernel_shape = [2], pads = [1, 1], strides = [1]> (x) }",
    "MaxPool, with places": "(float[a, 2, b] x) => (int64[p, q, r] y)"
    " { u, y = MaxPool <kernel_shape = [2], pads = [1, 1], strides = [1]> (x) }",
    "AveragePool": "(double[a, 2, b] x) => (double[p, q, r] y)"
    " { y = AveragePool <kernel_shape = [2], pads = [1, 1], strides = [2]> (x) }",
    "Pad": "(float[a, b] x) => (float[p, q] y) <int64[4] n = {1, 0, -0, 2}, float v = {7}>"
    " { y = Pad (x, n, v) }",
    "Where of an extent": "(float[a, b] x) => (float[p, q] y)"
    " <int64 four = {4}, float u = {1}, float v = {3}>"
    " { n = Size (x) c = Greater (n, four) f = Where (c, u, v) y = Mul (x, f) }",
    "Conv of images": "(float[2, 2, a, b] x) => (float[p, q, r, s] y)"
    " <float[2, 2, 3, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>"
    " { u = Conv <pads = [1, 2, 1, 2], strides = [1, 2]> (x, w)"
    " v = Relu (u) y = Conv <pads = [1, 0, 2, 0], strides = [2, 1]> (v, w) }",
    "depthwise Conv of images": "(float[a, 2, b, 4] x) => (float[p, q, r, s] y)"
    " <float[2, 1, 3, 1] w = {1, 2, 3, 4, 5, 6}>"
    ' { y = Conv <group = 2, auto_pad = "SAME_UPPER"> (x, w) }',
    "pools of images": "(float[1, 2, a, b] x) => (float[p, q, r, s] y)"
    " { u = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)"
    " v = GlobalAveragePool (x) w = GlobalMaxPool (x) t = Add (v, w) y = Add (u, t) }",
    "pools of images that round up": "(float[1, 2, a, b] x) => (float[p, q, r, s] y)"
    " { u = MaxPool <kernel_shape = [3, 2], strides = [2, 2], ceil_mode = 1, pads = [1, 0, 1, 1]>"
    " (x) y = AveragePool <kernel_shape = [2, 3], strides = [3, 2], ceil_mode = 1,"
    " pads = [1, 1, 0, 1]> (u) }",
    "Conv of images that are padded by name": "(float[1, 2, a, b] x) => (float[p, q, r, s] y)"
    " <float[2, 2, 3, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,"
    ' 11, 12}> { u = Conv <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, w) v = Relu (u)'
    ' z = Conv <auto_pad = "SAME_LOWER", strides = [1, 2]> (v, w)'
    ' y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_LOWER"> (z) }',
    "ConvTranspose": "(float[1, 2, a, b] x) => (float[p, q, r, s] y)"
    " <float[2, 1, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
    " { y = ConvTranspose <strides = [2, 2]> (x, w) }",
    "ConvTranspose of windows that overlap": "(float[a, 2, b, 3] x) => (float[p, q, r, s] y)"
    " <float[2, 1, 4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,"
    " 11, 12}, float[1] v = {0.5}> { t = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 1]>"
    " (x, w, v) u = Relu (t) z = Concat <axis = 1> (u, u)"
    ' y = ConvTranspose <strides = [1, 3], auto_pad = "SAME_LOWER"> (z, w) }',
    "ConvTranspose of groups": "(float[1, 2, a, b] x) => (float[p, q, r, s] y)"
    " <float[2, 2, 3, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { y = ConvTranspose"
    " <group = 2, strides = [2, 2], output_padding = [1, 1], pads = [1, 0, 1, 0]> (x, w) }",
    "ConvTranspose of rows": "(float[a, 2, b] x) => (float[p, q, r] y)"
    " <float[2, 2, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>"
    " { y = ConvTranspose <strides = [3], dilations = [2], pads = [2, 1]> (x, w) }",
    "Resize": "(float[1, 2, a, b] x) => (float[p, q, r, s] y) <float[4] n = {1, 1, 2, 2}>"
    ' { y = Resize <mode = "nearest", nearest_mode = "floor",'
    ' coordinate_transformation_mode = "asymmetric"> (x, , n) }',
    "pools of images whose extents float32 rounds": "(float[1, 2, a, b] x) => (float[p, q, r, s] y)"
    " <float[4] n = {1, 1, 1, 1.4}>"
    ' { u = Resize <mode = "linear"> (x, , n) y = MaxPool <kernel_shape = [1, 1]> (u) }',
    "ConvInteger of volumes": "(uint8[a, 2, b, 4, b] x) => (int32[p, q, r, s, t] y)"
    " <int8[1, 2, 2, 3, 1] w = {1, -2, 3, 4, -5, 6, 7, 8, -9, 10, 11, 12}, uint8 z = {3}>"
    " { y = ConvInteger <pads = [1, 1, 0, 2, 1, 1], strides = [2, 1, 1]> (x, w, z) }",
    "QLinearConv of volumes": "(uint8[1, 2, a, b, 2] x) => (uint8[p, q, r, s, t] y)"
    " <int8[4, 1, 2, 1, 2] w = {1, -2, 3, 4, -5, 6, 7, 8, -9, 10, 11, 12, 1, 2, 3, 4},"
    " float e = {0.618}, uint8 z = {3}, int8 n = {0}, int32[4] c = {1, -20, 3, 40}>"
    ' { y = QLinearConv <group = 2, auto_pad = "SAME_LOWER", strides = [2, 1, 2]>'
    " (x, e, z, w, e, n, e, z, c) }",
    "DFT": "(float[a, b, 2] x) => (float[p, q, r] y) <int64 n = {1}> { y = DFT (x, , n) }",
    "STFT": "(float[a, b2, 1] x) => (float[p, q, r, s] y) <int64 n = {2}, int64 d = {3}>"
    " { y = STFT (x, d, , n) }",
    "STFT of both sides": "(float[a, b2, 1] x, float[2] w) => (float[p, q, r, s] y)"
    " <int64 d = {1}> { y = STFT <onesided = 0> (x, d, w) }",
    "DepthToSpace": "(float[1, 8, a, b] x) => (float[p, q, r, s] y)"
    ' { y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }',
    "halves": "(float16[a, b] x, float16[b] z) => (float16[p, q] y)"
    " { u = Transpose (x) v = Transpose (u) w = Div (v, z) t = Cast <to = 1> (w) r = Relu (t)"
    " y = Cast <to = 10> (r) }",
    "halves that are compared": "(float16[a, b, 2] x) => (float16[p, q, r] y)"
    " <int64[1] i = {2}> { y = ReduceMax (x, i) }",
    "bfloat16": "(float[a, b] x) => (float[p, q] y)"
    " { u = Cast <to = 16> (x) y = Cast <to = 1> (u) }",
    "Reshape": "(float[a, b] x) => (float[p] y) <int64[1] s = {-1}>"
    " { r = Relu (x) y = Reshape (r, s) }",
    "MatMul": "(float[a, b] x, float[b, 5] z) => (float[p, q] y) { y = MatMul (x, z) }",
    "MatMul of open columns": "(float[3, a, 4] x, float[3, b, 4] z) => (float[p, q, r] y)"
    " { t = Transpose <perm = [0, 2, 1]> (z) y = MatMul (x, t) }",
    "LayerNormalization": "(float[a, b, 4] x) => (float[p, q, r] y) <float[4] s = {1, 2, 3, 4}>"
    " { y = LayerNormalization (x, s) }",
    "a chain": "(float[a, b] x, float[b] z) => (float[p, q] y)"
    " { u = Mul (x, z) v = Tanh (u) w = Sub (v, z) y = Exp (w) }",
}
SHAPES = ((3, 5), (1, 1), (2, 7), (6, 1), (4, 6))
EMPTY = ((0, 3), (2, 0))
# The reference evaluator, or the operator, wants an element.
NOT_EMPTY = {
    "ArgMax",
    "AveragePool",
    "Conv",
    "DFT",
    "Gather",
    "GatherElements",
    "GatherND",
    "MaxPool",
    "MaxPool,",
}
NOT_EMPTY |= {"Pad", "ReduceMax", "ReduceMean", "Slice", "Softmax", "depthwise", "pools"}
NOT_EMPTY |= {"ConvTranspose", "QLinearConv", "Resize", "STFT"}
# Gaps of the reference evaluator.
GAPS = {"Conv", "ConvTranspose", "MaxPool", "MaxPool,", "QLinearConv", "STFT", "depthwise", "pools"}


def model_of(text: str) -> onnx.ModelProto:
    """Parse a model; its axis b2 is twice as long as b."""
    proto = parser.parse_model(HEAD + text)
    for value in proto.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "b2":
                dim.dim_param = "2*b"
    return proto


def inputs_of(proto: onnx.ModelProto, a: int, b: int) -> dict[str, np.ndarray]:
    """Random inputs for the extents; whole numbers from 0 to 7."""
    random = np.random.default_rng(a * 100 + b)
    made = {}
    for value in proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        sizes = {"a": a, "b": b, "2*b": 2 * b}
        shape = [sizes.get(dim.dim_param, dim.dim_value) for dim in dims]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        numbers = random.integers(0, 8, shape)
        made[value.name] = numbers + random.random(shape) - 4 if dtype.kind == "f" else numbers
        made[value.name] = made[value.name].astype(dtype)
    return made


def load(proto: onnx.ModelProto, folder: Path) -> runtime.Module:
    """Export and load a model."""
    return runtime.load(packer.export_library(packer.from_onnx(proto), folder / "m.so"))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_operator_takes_any_shape(name: str, tmp_path: Path) -> None:
    """Random inputs of each shape, of one element and of none."""
    proto = model_of(MODELS[name])
    model = load(proto, tmp_path)
    reference = ReferenceEvaluator(proto)
    if name.split(" ")[0] in GAPS:
        reference = onnxruntime.InferenceSession(proto.SerializeToString())
    for a, b in (*SHAPES, *(EMPTY if name.split(" ")[0] not in NOT_EMPTY else ())):
        if name == "Slice of a table" and b > 7:
            continue
        given = inputs_of(proto, a, b)
        (expected,) = reference.run(None, given)
        found = model["main"](*given.values()).numpy()
        assert found.shape == np.shape(expected), (a, b)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# ---- What a call checks


REFUSED = {
    "another input": (
        "(float[a, b] x, float[a, b] z) => (float[p, q] y) { y = Add (x, z) }",
        ((2, 3), (2, 4)),
        r"input 'z' of float32\[a, b\]: extent of axis 1, expected 3, found 4",
    ),
    "a bound": (
        MODELS["Slice of a table"],
        ((2, 8),),
        "main: extent b, expected at most 7, found 8",
    ),
    "a derived extent": (
        "(float[a, b] x, float[a, b2] z) => (float[p, q] y) { y = Concat <axis = 1> (x, z) }",
        ((2, 3), (2, 7)),
        r"input 'z' of float32\[a, 2\*b\]: extent of axis 1, expected 6, found 7",
    ),
    "elements": (
        "(float[a, b] x) => (float[p, q] y) <int64[2] s = {-1, 2}> { y = Reshape (x, s) }",
        ((3, 3),),
        r"\(Reshape\): extent .* expected 9, found 8",
    ),
    "blocks": (
        "(float[1, 1, a, 4] x) => (float[p, q, r, s] y) { y = SpaceToDepth <blocksize = 2> (x) }",
        ((1, 1, 3, 4),),
        r"\(SpaceToDepth\): extent .* expected 12, found 8",
    ),
    "an index": (
        MODELS["Gather of rows"],
        ((1, 1, 9),),
        "Gather: index 0 of input 1, expected -8 to 7, found 9",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_is_refused_with_the_extents(case: str, tmp_path: Path) -> None:
    """Before memory is touched; a call that fits works afterwards."""
    text, shapes, words = REFUSED[case]
    proto = model_of(text)
    model = load(proto, tmp_path)
    if case == "an index":
        given = [np.full((1, 1), 9, np.int64)]
    else:
        given = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises((ValueError, IndexError), match=words):
        model["main"](*given)
    fits = {}
    for value in proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        sizes = {"a": 2, "b": 3, "2*b": 6}
        shape = [sizes.get(dim.dim_param, dim.dim_value) for dim in dims]
        fits[value.name] = np.zeros(shape, given[0].dtype)
    (expected,) = ReferenceEvaluator(proto).run(None, fits)
    np.testing.assert_array_equal(model["main"](*fits.values()).numpy(), expected)


def test_extents_whose_product_exceeds_memory_are_refused(tmp_path: Path) -> None:
    """Without elements an input may have any extents; nothing overflows."""
    text = "(float[a, 0, b] x) => (float[p, q] y) { y = ReduceSum <keepdims = 0> (x, i) }"
    proto = model_of(text.replace(" y) {", " y) <int64[1] i = {1}> {"))
    model = load(proto, tmp_path)
    assert model["main"](np.zeros((2, 0, 3), np.float32)).numpy().tolist() == [[0.0] * 3] * 2
    huge = np.zeros((1 << 40, 0, 3), np.float32)
    with pytest.raises(ValueError, match="extent a, expected at most 2147483647, found 109951"):
        model["main"](huge)
    with pytest.raises(MemoryError, match="main: the values for these extents exceed memory"):
        model["main"](np.zeros(((1 << 31) - 1, 0, 1 << 20), np.float32))


def test_the_record_names_open_extents(tmp_path: Path) -> None:
    """Of inputs and outputs; expressions are written as sympy writes them."""
    model = load(model_of(MODELS["Concat"]), tmp_path)
    assert [str(info) for info in model.inputs] == ["x: float32[a, b]", "z: float32[a, 2]"]
    assert [str(info) for info in model.outputs] == ["y: float32[a, 2*b + 2]"]


def test_an_extent_after_strides_is_written_in_the_names_of_the_inputs(tmp_path: Path) -> None:
    """The code has another name for it."""
    model = load(model_of(MODELS["Conv of images"]), tmp_path)
    assert [str(info) for info in model.outputs] == [
        "y: float32[2, 2, floor(a/2) + 1, floor(b/2 + 3/2) + 1]"
    ]


def test_extents_that_small_pictures_have_in_common_are_calculated(tmp_path: Path) -> None:
    """After four pools, pictures of 2 and of 3 rows have one row each; others have more."""
    text = "(float[1, 1, a, b] x) => (float[p, q, r, s] y) {"
    for one, other in ("xu", "uv", "vw", "wy"):
        text += (
            f" {other} = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> ({one})"
        )
    proto = model_of(f"{text} }}")
    given = {"x": np.random.default_rng(0).random((1, 1, 70, 33), np.float32)}
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)
    np.testing.assert_array_equal(load(proto, tmp_path)["main"](given["x"]).numpy(), expected)


def test_the_best_of_a_picture_after_large_strides(tmp_path: Path) -> None:
    """Only large pictures have so many places."""
    text = (
        "(float[1, 1, a, b] x) => (float[p] y, int64[p] i) <int64[1] s = {-1}, int64[1] k = {99}>"
    )
    text += " { u = AveragePool <kernel_shape = [32, 32], strides = [32, 32]> (x)"
    proto = model_of(f"{text} v = Reshape (u, s) y, i = TopK (v, k) }}")
    given = {"x": np.random.default_rng(0).random((1, 1, 320, 352), np.float32)}
    _, expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)
    found = load(proto, tmp_path)["main"](given["x"])[1].numpy()
    np.testing.assert_array_equal(found, expected)


def test_names_that_are_no_identifiers_become_some(tmp_path: Path) -> None:
    """Axes without a name too; equal names stay equal."""
    shapes = {"x": ("batch size", None), "z": ("batch size", "1st")}
    inputs = [onnx.helper.make_tensor_value_info(key, 1, shape) for key, shape in shapes.items()]
    node = onnx.helper.make_node("Concat", ["x", "z"], ["y"], axis=1)
    outputs = [onnx.helper.make_tensor_value_info("y", 1, (None, None))]
    graph = onnx.helper.make_graph([node], "g", inputs, outputs)
    opsets = [onnx.helper.make_opsetid("", 23)]
    model = load(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path)
    assert [info.shape for info in model.inputs] == [("batch_size", "x_1"), ("batch_size", "_1st")]
    made = model["main"](np.ones((2, 3), np.float32), np.zeros((2, 1), np.float32))
    assert made.numpy().tolist() == [[1, 1, 1, 0]] * 2


def test_an_operator_without_open_code_is_refused_by_name() -> None:
    """With what to do; given extents, it works."""
    text = "(float[a, 4, b] x) => (float[p, q, r] y) { y = LpNormalization <axis = 2> (x) }"
    proto = model_of(text)
    words = r"\(LpNormalization\): it has no code for open extents; give them by input_shapes"
    with pytest.raises(packer.ExportError, match=words):
        packer.from_onnx(proto)
    assert packer.from_onnx(proto, {"x": (1, 4, 3)})
