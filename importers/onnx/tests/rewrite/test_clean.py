"""Nodes without an effect or a use."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser

from dso_packer_onnx.rewrite import clean

from ..support.rewriting import make, rewritten, unchanged

WEIGHTS = {
    "zero": np.float32(0),
    "one": np.ones((1, 1), np.float32),
    "zeros": np.zeros((5, 3, 4), np.float32),
    "shape": np.array([2, 3, 4]),
    "nothing": np.zeros(6, np.int64),
    "start": np.array([0]),
    "end": np.array([2**62]),
    "back": np.array([-1]),
    "training": np.array(False),
    "ratio": np.float32(0.5),
}


@pytest.mark.parametrize(
    "text",
    [
        "Add(r, zero)",
        "Add(zero, r)",
        "Sub(r, zero)",
        "Mul(one, r)",
        "Div(r, one)",
        "Pow(r, one)",
        "Cast<to=1>(r)",
        "CastLike(r, zero)",
        "Dropout(r)",
        "Dropout(r, ratio, training)",
        "Reshape(r, shape)",
        "Expand(r, shape)",
        "Transpose<perm=[0,1,2]>(r)",
        "Pad(r, nothing)",
        "Slice(r, start, end)",
        "Concat<axis=0>(r)",
        "Sum(r)",
    ],
)
def test_a_node_that_returns_its_input_is_removed(text: str) -> None:
    """And the constants that only it read."""
    model = make(f"(float[2,3,4] x) => (float[] y) {{ r = Relu(x) y = {text} }}", WEIGHTS)
    found = rewritten(model, clean.remove_no_ops)
    assert (found.kinds, found.result) == (["Relu"], 1)
    assert not found.model.graph.initializers


@pytest.mark.parametrize(
    "text",
    [
        "Add(x, zeros)",  # five times
        "Sub(zero, x)",
        "Div(one, x)",
        "Flatten(x)",
        "Slice(x, end, start, start, back)",
        "Transpose<perm=[1,0,2]>(x)",
        "Add(x, x)",
    ],
)
def test_a_node_with_an_effect_remains(text: str) -> None:
    """Each looks like one without."""
    model = make(f"(float[1,3,4] x) => (float[] y) {{ y = {text} }}", WEIGHTS)
    assert unchanged(model, clean.remove_no_ops)


def test_an_output_that_is_an_input_or_a_weight_is_copied() -> None:
    """By an Identity, under its name."""
    model = make(
        "(float[2,3] x) => (float[] y, float[] z) { y = Dropout(x) z = Mul(w, one) }",
        {**WEIGHTS, "w": np.ones((2, 2), np.float32)},
    )
    found = rewritten(model, clean.remove_no_ops)
    assert found.kinds == ["Identity", "Identity"]
    assert [value.name for value in found.model.graph.outputs] == ["y", "z"]


def test_a_pad_that_moves_elements_remains() -> None:
    """Its result has the shape of its input."""
    text = "(float[2,3] x) => (float[] y) <int64[4] p = {0, 1, 0, -1}> { y = Pad(x, p) }"
    assert rewritten(make(text), clean.remove_no_ops).kinds == ["Pad"]


def test_two_outputs_of_one_value_remain_two() -> None:
    """The second one is a copy."""
    model = make("(float[2,3] x) => (float[] y, float[] z) { y = Relu(x) z = Dropout(y) }")
    assert rewritten(model, clean.remove_no_ops).kinds == ["Relu", "Identity"]


def test_a_join_begins_with_an_earlier_one() -> None:
    """The longest that it begins with, along the same axis."""
    model = make(
        "(float[2,3] a, float[2,4] b, float[2,5] c) => (float[] x, float[] y, float[] z) {"
        " x = Concat<axis = 1>(a, b) y = Concat<axis = -1>(a, b, c)"
        " z = Concat<axis = 1>(a, b, c, a) }"
    )
    found = rewritten(model, clean.share_joined)
    names = [[value.name for value in node.inputs if value] for node in found.model.graph]
    assert (found.result, names) == (2, [["a", "b"], ["x", "c"], ["y", "a"]])


def test_passes_of_onnx_ir_tidy_a_graph() -> None:
    """Equal nodes are one, dead ones are removed."""
    model = make(
        """(float[2,3] x) => (float[] y) {
            c = Constant<value_float=2.0>() i = Identity(x) a = Mul(i, c) b = Mul(x, c)
            dead = Exp(x) y = Add(a, b)
        }"""
    )
    found = rewritten(
        model,
        clean.lift_constants,
        clean.remove_identity,
        clean.share_equal_nodes,
        clean.remove_dead_nodes,
        clean.name_everything,
    )
    assert found.kinds == ["Mul", "Add"]
    assert set(found.model.graph.initializers) == {"c"}


def test_functions_of_a_model_are_inlined() -> None:
    """As the exporter of PyTorch writes them."""
    text = """<ir_version: 10, opset_import: ["" : 23, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 23]> twice (a) => (b) { b = Add(a, a) }"""
    model = ir.from_proto(parser.parse_model(text))
    assert clean.inline_functions(model) == 1
    assert [node.op_type for node in model.graph] == ["Add"]
