"""Loops of elementwise operators."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.elementwise import MOST_NODES, fuse_elementwise
from dso_packer_onnx.rewrite.record import summary

from ..support.rewriting import Rewritten, make, rewritten, unchanged

RANDOM = np.random.default_rng(1)
WEIGHTS = {
    "two": np.float32(2),
    "one": np.ones((1, 1), np.float32),
    "row": RANDOM.normal(size=6).astype(np.float32),
}


def inner(found: Rewritten) -> list[str]:
    """Return the operators of the only loop."""
    return [node.op_type for node in found.attributes("Elementwise")["graph"]]


def loop(text: str, outputs: str = "float[] y") -> Rewritten:
    """Fuse the loops of a graph."""
    head = f"(float[batch,5,6] x, float[batch,5,6] z, float[batch,1,6] v) => ({outputs})"
    return rewritten(make(f"{head} {{ {text} }}", WEIGHTS), fuse_elementwise)


def test_a_chain_is_one_loop_with_its_numbers_in_it() -> None:
    """Other constants are inputs."""
    found = loop("a = Mul(x, two) b = Tanh(a) c = Add(b, row) y = Pow(c, one)")
    assert (found.kinds, found.result) == (["dso.Elementwise"], 4)
    assert inner(found) == ["Mul", "Tanh", "Add", "Pow"]
    assert [value.name for value in found.node("Elementwise").inputs] == ["x", "row"]
    assert set(found.attributes("Elementwise")["graph"].initializers) == {"two", "one"}
    assert "number in the loop" in summary(found.model, ["two"])["two"]


def test_a_value_may_be_read_twice_in_the_loop() -> None:
    """As in x * sigmoid(x)."""
    found = loop("a = Add(x, z) s = Sigmoid(a) b = Mul(a, s) y = Sub(b, a)")
    assert inner(found) == ["Add", "Sigmoid", "Mul", "Sub"]


def test_a_single_operator_is_a_loop() -> None:
    """So a layout needs to know one kind of node."""
    assert inner(loop("y = HardSwish(x)")) == ["HardSwish"]


def test_a_clip_with_one_limit_keeps_its_place() -> None:
    """An input that is left out remains so."""
    assert inner(loop("a = Neg(x) y = Clip(a, , two)")) == ["Neg", "Clip"]


def test_a_smaller_value_is_computed_in_its_own_loop() -> None:
    """In the larger one it would be computed again and again."""
    assert loop("a = Exp(v) y = Mul(x, a)").kinds == ["dso.Elementwise", "dso.Elementwise"]


def test_a_value_that_others_read_ends_a_loop() -> None:
    """Another operator, or the caller."""
    found = loop("a = Exp(x) y = Neg(a) r = Softmax(a)", "float[] y, float[] r")
    assert sorted(found.kinds) == ["Softmax", "dso.Elementwise", "dso.Elementwise"]
    found = loop("a = Exp(x) y = Neg(a)", "float[] y, float[] a")
    assert found.kinds == ["dso.Elementwise", "dso.Elementwise"]


@pytest.mark.parametrize(
    "text",
    [
        "(double[3] x) => (double[] y) { y = Exp(x) }",
        "(int64[3] x) => (int64[] y) { y = Add(x, x) }",
        "(float[3] x) => (bool[] y) { y = IsNaN(x) }",
    ],
)
def test_other_types_remain(text: str) -> None:
    """The kernels compute in float32."""
    assert unchanged(make(text), fuse_elementwise)


def test_a_long_chain_is_several_loops() -> None:
    """The compiler sees loops of a bounded size."""
    count = 2 * MOST_NODES + 3
    lines = " ".join(f"v{i + 1} = Abs(v{i})" for i in range(count))
    model = make(f"(float[2,3] v0) => (float[] v{count}) {{ {lines} }}")
    assert len(rewritten(model, fuse_elementwise).kinds) == 3
