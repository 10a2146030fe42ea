"""Operators by generated C: data types, indices, a batch, memory, symbols, refusals."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

import packer
import runtime
from dso_packer_onnx.lower.generic import lower_generic
from dso_packer_onnx.lower.refused import CAUSES, OperatorRefusedError
from dso_packer_onnx.operator import Operator
from packer.link import INCLUDE

HEAD = '<ir_version: 10, opset_import: ["" : 23]>\ng'


def parsed(text: str) -> onnx.ModelProto:
    """A model in ONNX's text form, without its head."""
    return onnx.parser.parse_model(f"{HEAD} {text}")


def lowered(text: str) -> list[Operator]:
    """The operators of a graph."""
    return [lower_generic(node) for node in ir.from_proto(parsed(text)).graph]


def loaded(text: str, path: Path, **options: object) -> runtime.Module:
    """The library of a model."""
    made = packer.from_onnx(parsed(text), **options)
    return runtime.load(packer.export_library(made, path, build=packer.Build(cpu=())))


def test_equal_nodes_are_one_function() -> None:
    """Names of values and nodes do not count; other attributes make another function."""
    one, two, three = lowered(
        """(float[2, 3] x) => (float[2, 3] a, float[2, 3] b, float[2, 3] c) {
          a = HardSigmoid <alpha = 0.5> (x)
          [named] b = HardSigmoid <alpha = 0.5> (a)
          c = HardSigmoid <alpha = 0.25> (a)
        }"""
    )
    assert one.name == two.name and one.code == two.code
    assert one.name != three.name
    assert re.fullmatch("hardsigmoid_[0-9a-f]{10}", one.name)


@pytest.mark.parametrize(
    "text",
    [
        "(float[4, 5] x) => (int64[4] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }",
        "(float[2, 4] x) => (float[2, 4] y) <int64 a = {1}> { y = CumSum <reverse = 1> (x, a) }",
        "(float[8] x) => (float[5] y, int64[5] i) { k = Constant <value_ints = [5]> ()"
        " y, i = TopK (x, k) }",
    ],
)
def test_results_are_those_of_onnx(text: str, tmp_path: Path) -> None:
    """For operators without a kernel here."""
    x = np.random.default_rng(1).normal(size=_shape(text)).astype(np.float32)
    results = loaded(text, tmp_path / "m.so")["main"](x)
    results = results if isinstance(results, (tuple, list)) else [results]
    expected = ReferenceEvaluator(parsed(text)).run(None, {"x": x})
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4, atol=1e-6)


def _shape(text: str) -> list[int]:
    return [int(extent) for extent in text[text.index("[") + 1 : text.index("]")].split(",")]


def test_bfloat16_is_computed_as_float_and_rounded(tmp_path: Path) -> None:
    """To the nearest, as ml_dtypes rounds; no compiler needs to have the type."""
    model = loaded("(bfloat16[257] x) => (bfloat16[257] y) { y = Erf (x) }", tmp_path / "m.so")
    x = np.linspace(-3, 3, 257).astype(ml_dtypes.bfloat16)
    expected = ReferenceEvaluator(parsed("(float[257] x) => (float[257] y) { y = Erf (x) }")).run(
        None, {"x": x.astype(np.float32)}
    )[0]
    found = model["main"](x).numpy()
    assert found.tolist() == expected.astype(ml_dtypes.bfloat16).tolist()


def test_int4_is_packed_in_memory(tmp_path: Path) -> None:
    """The first element is in the low bits, as in DLPack; negative numbers keep their sign."""
    text = "(int4[5] x) => (float[5] y, int4[5] z) { y = Cast <to = 1> (x) z = Cast <to = 22> (y) }"
    x = runtime.Tensor(bytes([0x21, 0xF8, 0x07]), (5,), "int4")
    y, z = loaded(text, tmp_path / "m.so")["main"](x)
    assert y.numpy().tolist() == [1, 2, -8, -1, 7]
    assert z.raw.tobytes() == x.raw.tobytes()


def test_an_index_outside_raises_where_generated_code_would_read(tmp_path: Path) -> None:
    """Both ends; -1 is the last one."""
    text = "(float[3, 2] x, int64[2] i) => (float[2, 2] y) { y = Gather (x, i) }"
    model = loaded(text, tmp_path / "m.so")
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert model["main"](x, np.array([2, -1])).numpy().tolist() == [[4, 5], [4, 5]]
    for wrong in (3, -4):
        with pytest.raises(IndexError) as raised:
            model["main"](x, np.array([0, wrong]))
        message = f"Gather: index 0 of input 1, expected -3 to 2, found {wrong}"
        assert str(raised.value) == message


def test_a_constant_index_outside_is_refused() -> None:
    """When the model is exported."""
    with pytest.raises(OperatorRefusedError, match=r"expected -3 to 2, found 3"):
        lowered(
            "(float[3] x) => (float[1] y) <int64[1] i = {3}> { y = Gather (x, i) }",
        )


def test_a_shape_that_the_data_contradicts_raises(tmp_path: Path) -> None:
    """A model may declare the shape of NonZero's result, but the data decides."""
    model = loaded("(float[4] x) => (int64[1, 2] y) { y = NonZero (x) }", tmp_path / "m.so")
    assert model["main"](np.array([0, 1, 0, 2], np.float32)).numpy().tolist() == [[1, 3]]
    with pytest.raises(
        IndexError, match="NonZero: elements that are true, expected 2 to 2, found 3"
    ):
        model["main"](np.array([1, 1, 0, 2], np.float32))


BATCHED = [
    "(float[batch, 4, 6] x) => (float[batch, 6, 4] y) { y = Transpose <perm = [0, 2, 1]> (x) }",
    "(float[batch, 4] x) => (float[batch, 4] y) { y = Hardmax <axis = 1> (x) }",
    "(float[batch, 4] x) => (int64[batch, 1] y) { y = ArgMin <axis = 1> (x) }",
    "(float[batch, 4, 6] x) => (float[batch, 4, 1] y) <int64[1] a = {2}>"
    " { y = ReduceLogSumExp (x, a) }",
    "(float[batch, 4, 6] x) => (float[batch, 2, 6] y) <int64[1] s = {1}, int64[1] e = {3},"
    " int64[1] a = {1}> { y = Slice (x, s, e, a) }",
    "(float[batch, 3] x) => (float[batch, 5] y) <int64[4] p = {0, 1, 0, 1}> { y = Pad (x, p) }",
    "(float[batch, 3] x) => (float[batch, 3] y) <float[3] w = {1, 2, 3}> { y = Mod <fmod = 1>"
    " (x, w) }",
    "(float[batch, 4, 6] x) => (float[batch, 4, 6] y) { y = LpNormalization <axis = 1> (x) }",
]


@pytest.mark.parametrize("text", BATCHED)
def test_a_symbolic_batch_is_any_number_of_entries(text: str, tmp_path: Path) -> None:
    """None, one, several: each result is that of ONNX."""
    model = loaded(text, tmp_path / "m.so", dynamic=["batch"])
    shape = re.findall(r"\d+", text[text.index("batch") : text.index("]")])
    for batch in (1, 3):
        size = (batch, *map(int, shape))
        x = np.random.default_rng(1).normal(size=size).astype(np.float32)
        (expected,) = ReferenceEvaluator(parsed(text)).run(None, {"x": x})
        np.testing.assert_allclose(model["main"](x).numpy(), expected, rtol=1e-4, atol=1e-6)


REFUSED = {
    "random": "(float[2] x) => (float[2] y) { y = RandomUniformLike (x) }",
    "image": "(uint8[9] x) => (uint8[2, 2, 3] y) { y = ImageDecoder (x) }",
    "open": "(float[batch, 4] x) => (float[batch, 4] y) { y = Hardmax <axis = 0> (x) }",
    "shape": "(float[4] x, int64[1] s) => (float[N] y) { y = CenterCropPad (x, s) }",
    "dtype": "(complex64[4] x) => (complex64[4] y) { y = Neg (x) }",
    "string": "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }",
}


@pytest.mark.parametrize("cause", REFUSED)
def test_a_refusal_names_node_operator_and_cause(cause: str) -> None:
    """The causes are a short list."""
    with pytest.raises(OperatorRefusedError) as raised:
        lowered(REFUSED[cause])
    assert raised.value.cause == cause
    assert re.match(r"node of output 'y' \(\w+\): ", str(raised.value))
    assert CAUSES[cause] in str(raised.value)


def test_large_temporaries_are_in_the_workspace(tmp_path: Path) -> None:
    """Of an LSTM whose state would take most of a thread's stack."""
    text = (
        "(float[2, 64, 3] x, float[1, 2048, 3] w, float[1, 2048, 512] r)"
        " => (float[2, 1, 64, 512] y) { y = LSTM <hidden_size = 512> (x, w, r) }"
    )
    (operator,) = lowered(text)
    assert operator.workspace >= 2 * 64 * 512 * 4
    random = np.random.default_rng(1)
    shapes = {"x": (2, 64, 3), "w": (1, 2048, 3), "r": (1, 2048, 512)}
    values = {k: 0.1 * random.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    values = {key: value.astype(np.float32) for key, value in values.items()}
    found = loaded(text, tmp_path / "m.so")["main"](*values.values())
    (expected,) = ReferenceEvaluator(parsed(text)).run(None, values)[:1]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-5)


def test_an_operator_defines_one_symbol(tmp_path: Path) -> None:
    """The constants of an If are static, too."""
    (operator,) = lowered("(float[8] x) => (float[8] y) { y = Hardmax (x) }")
    source, made = tmp_path / "op.c", tmp_path / "op.o"
    source.write_text(operator.code)
    subprocess.run(["cc", *(f"-I{path}" for path in INCLUDE), "-c", source, "-o", made], check=True)
    listed = subprocess.run(["nm", "-g", "--defined-only", made], capture_output=True, text=True)
    assert [line.split()[-1] for line in listed.stdout.splitlines()] == [operator.name]
