"""Constant expressions."""

from __future__ import annotations

import time

import numpy as np
import onnx_ir as ir
import pytest

from dso_packer_onnx.rewrite import clean, constants
from dso_packer_onnx.rewrite.matmul import fuse_matmul
from dso_packer_onnx.rewrite.record import summary

from ..support.rewriting import make, rewritten

RANDOM = np.random.default_rng(1)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


def test_a_constant_expression_is_computed_and_recorded() -> None:
    """Through a value between."""
    model = make(
        """(float[2,3] x) => (float[] y) {
            two = Constant<value_float=2.0>() a = Mul(w, two) b = Exp(a) y = Add(x, b)
        }""",
        {"w": weight(2, 3)},
    )
    found = rewritten(model, constants.fold_constants)
    assert found.kinds == ["Add"]
    assert summary(found.model, ["w"]) == {"w": "in 'b': a constant expression of it"}


def test_shapes_with_a_symbolic_batch_are_constants() -> None:
    """No arithmetic of extents is left."""
    model = make(
        """(float[batch,3,4] x) => (float[batch,12] y) {
            s = Shape(x) zero = Constant<value_int=0>() n = Gather(s, zero)
            axes = Constant<value_ints=[0]>() m = Unsqueeze(n, axes)
            rest = Constant<value_ints=[12]>() t = Concat<axis=0>(m, rest) y = Reshape(x, t)
        }"""
    )
    found = rewritten(model, constants.fold_constants, constants.fix_shapes, batch=5)
    assert found.kinds == ["Reshape"]
    assert found.node("Reshape").inputs[1].const_value.numpy().tolist() == [-1, 12]


def test_a_condition_that_is_constant_selects_a_branch() -> None:
    """Its nodes take the place of the If."""
    model = make(
        """(float[2,3] x) => (float[] y) {
            c = Constant<value = bool {1}>()
            y = If (c) <
                then_branch = t () => (float[2,3] p) { p = Relu(x) },
                else_branch = e () => (float[2,3] q) { q = Exp(x) }
            >
        }"""
    )
    found = rewritten(model, clean.lift_constants, constants.fold_constants)
    assert found.kinds == ["Relu"]


@pytest.mark.parametrize(
    "text",
    [
        "a, b, e = BatchNormalization<training_mode=1>(w, o, z, q, r) c = Reshape(a, s)",
        'c = Resize<mode="cubic", axes=[2,3]>(p, , , sizes)',
        'c = Resize<mode="linear", coordinate_transformation_mode="align_corners">(p, , scales)',
        "a = Conv<pads=[1,1,1,1]>(p, v) c = Tanh(a)",
        "c, i = TopK<axis=2>(p, two)",
        "c = MaxPool<kernel_shape=[2,2]>(p)",
        "e = HannWindow<periodic=0>(many) c = Reshape(e, s)",
    ],
    ids=lambda text: text.split("<")[0].split(" = ")[1],
)
def test_operators_of_constants_are_computed(text: str) -> None:
    """Of several results, and slow ones in Python while they are small."""
    model = make(
        f"(float[n,3,h,w] x) => (float[] y) {{ {text} y = Conv(x, c) }}",
        {
            "w": weight(2, 3, 3, 3),
            "o": np.ones(3, np.float32),
            "z": np.zeros(3, np.float32),
            "q": weight(3),
            "r": weight(3) ** 2,
            "p": weight(2, 3, 5, 4),
            "s": np.array([2, 3, 3, 3]),
            "sizes": np.array([7, 3]),
            "scales": np.float32([1, 1, 1, 2]),
            "v": weight(3, 3, 3, 3),
            "two": np.array([2]),
            "many": np.int64(54),
        },
    )
    found = rewritten(model, constants.fold_constants, batch=9)
    assert found.kinds == ["Conv"]
    first = text.split(">(")[1].split(",")[0].split(")")[0]
    assert list(summary(found.model, [first])) == [first]


def test_slow_operators_of_many_constants_remain() -> None:
    """They run once in each call."""
    text = "c = Resize(p, , scales) a = GridSample(p, g) b = Add(c, a) y = Add(x, b)"
    scales = np.float32([1, 1, 40.5, 40])
    grid = np.zeros((1, 81, 80, 2), np.float32)
    model = make(
        f"(float[1,3,81,80] x) => (float[] y) {{ {text} }}",
        {"p": weight(1, 3, 2, 2), "scales": scales, "g": grid},
    )
    after = ir.from_proto(model)
    constants.fold_constants(after)
    assert [node.op_type for node in after.graph][:2] == ["Resize", "GridSample"]


@pytest.mark.parametrize(
    "text",
    [
        "Expand(one, large)",
        "Tile(one, large)",
        "ConstantOfShape(large)",
        "Pad(one, large)",
        "Range(first, last, step)",
        "OneHot(many, depth, limits)",
    ],
)
def test_a_constant_does_not_become_huge(text: str) -> None:
    """Nor is it computed before its size is compared."""
    model = make(
        f"(float[1,1] x) => (float[] y) {{ c = {text} d = Cast<to=1>(c) y = Add(x, d) }}",
        {
            "one": weight(1, 1),
            "large": np.array([1 << 20, 1 << 20, 0, 0][: 4 if "Pad" in text else 2]),
            "first": np.int64(0),
            "last": np.int64(2**40),
            "step": np.int64(1),
            "many": np.arange(1 << 15),
            "depth": np.array([2**25]),
            "limits": weight(2),
        },
    )
    after = ir.from_proto(model)
    start = time.perf_counter()
    constants.fold_constants(after)
    assert time.perf_counter() - start < 1
    assert text.split("(")[0] in [node.op_type for node in after.graph]


def test_constants_do_not_become_huge_together() -> None:
    """Each has 4 MiB; a node that would exceed the sum remains."""
    nodes = "".join(f"c{i} = Expand(one, side) y{i} = Add(x, c{i}) " for i in range(20))
    outputs = ", ".join(f"float[] y{i}" for i in range(20))
    model = make(
        f"(float[1] x) => ({outputs}) {{ {nodes} }}",
        {"one": weight(1), "side": np.array([1 << 20])},
    )
    found = rewritten(model, constants.fold_constants)
    assert found.kinds.count("Expand") == 4


def test_a_constant_may_grow_with_its_inputs() -> None:
    """Weights of one byte become float32, 17 MiB."""
    model = make(
        "(float[1,1] x) => (float[] y) { c = DequantizeLinear(q, s, z) y = Add(x, c) }",
        {
            "q": RANDOM.integers(-128, 128, (2100, 2100)).astype(np.int8),
            "s": np.float32(0.5),
            "z": np.int8(3),
        },
    )
    assert rewritten(model, constants.fold_constants).kinds == ["Add"]


def test_a_transposed_weight_of_a_product_keeps_its_name() -> None:
    """The product reads it transposed."""
    model = make(
        "(float[batch,3] x) => (float[] y) { t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }",
        {"w": weight(5, 3)},
    )
    found = rewritten(model, constants.fold_constants, fuse_matmul)
    assert found.kinds == ["dso.MatMul"]
    assert found.attributes("MatMul")["trans_b"] == 1
    assert set(found.model.graph.initializers) == {"w"}


def test_random_numbers_are_not_constants() -> None:
    """Each call returns others."""
    model = make(
        """(float[2] x) => (float[] y) {
            r = RandomNormal<shape=[2]>() b = Bernoulli(p) s = Add(r, b) y = Add(x, s)
        }""",
        {"p": weight(2)},
    )
    after = ir.from_proto(model)
    constants.fold_constants(after)
    assert len(after.graph) == 4
