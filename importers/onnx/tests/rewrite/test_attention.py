"""Attention, spelled out and as an operator, and the transposes around it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from dso_packer_onnx.rewrite import rewrite
from dso_packer_onnx.rewrite.attention import fuse_attention
from dso_packer_onnx.rewrite.attention_operator import fuse_attention_operator
from dso_packer_onnx.rewrite.clean import remove_dead_nodes
from dso_packer_onnx.rewrite.record import summary

from ..support.rewriting import Rewritten, make, named, rewritten

RANDOM = np.random.default_rng(1)
HEADS = "(float[batch,2,5,4] q, float[batch,2,4,7] k, float[batch,2,7,3] v{})"
LOWEST = float(np.finfo(np.float32).min)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


def attention(text: str, inputs: str = "", **weights: np.ndarray) -> Rewritten:
    """Fuse attention; the text computes p of q and k."""
    head = HEADS.format(inputs)
    numbers = {"two": np.float32(2), "half": np.float32(0.5), "zero": np.float32(0)}
    model = make(f"{head} => (float[] y) {{ {text} y = MatMul(p, v) }}", {**numbers, **weights})
    return rewritten(model, fuse_attention, remove_dead_nodes)


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("s = MatMul(q, k) p = Softmax(s)", 1.0),
        ("s = MatMul(q, k) a = Mul(s, half) p = Softmax<axis=3>(a)", 0.5),
        ("s = MatMul(q, k) a = Div(s, two) p = Softmax(a)", 0.5),
        ("r = Mul(half, q) s = MatMul(r, k) p = Softmax(s)", 0.5),
        ("r = Mul(q, half) t = Div(k, two) s = MatMul(r, t) p = Softmax(s)", 0.25),
        ("s = MatMul(q, k) r = Softmax(s) n = IsNaN(r) p = Where(n, zero, r)", 1.0),
    ],
)
def test_two_products_with_a_softmax_between_are_attention(text: str, scale: float) -> None:
    """The scale may be at any of the three; rows without a key may be zeros."""
    found = attention(text)
    assert found.kinds == ["Transpose", "dso.Attention"]
    attributes = found.attributes("Attention")
    assert (attributes["scale"], attributes["is_causal"]) == (scale, 0)
    assert (attributes["num_heads"], attributes["layout"]) == (2, "bhs")


@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (7,), (2, 1, 7), (1, 1, 5, 7)])
@pytest.mark.parametrize("added", ["Add(a, m)", "Add(m, a)"])
def test_a_mask_is_added_to_the_scaled_product(shape: tuple[int, ...], added: str) -> None:
    """It broadcasts to batches, heads and rows."""
    text = f"s = MatMul(q, k) a = Mul(s, half) b = {added} p = Softmax(b)"
    found = attention(text, m=weight(*shape))
    assert found.kinds == ["Transpose", "dso.Attention"]
    assert tuple(found.node("Attention").inputs[3].shape) == shape


def test_a_mask_may_be_an_input() -> None:
    """It has a number for each key."""
    text = "s = MatMul(q, k) b = Add(s, m) p = Softmax(b)"
    assert len(attention(text, ", float[batch,1,5,7] m").node("Attention").inputs) == 4


@pytest.mark.parametrize("where", ["Where(m, s, low)", "Where(m, low, s)"])
def test_a_mask_of_bool_is_one_that_is_added(where: str) -> None:
    """A constant is converted; a Where converts an input."""
    text = f"s = MatMul(q, k) b = {where} p = Softmax(b)"
    seen = RANDOM.integers(0, 2, (5, 7)).astype(bool)
    seen[:, 0] = where == "Where(m, s, low)"
    found = attention(text, m=seen, low=np.float32(LOWEST))
    assert found.kinds == ["Transpose", "dso.Attention"]
    assert "m" in summary(found.model, ["m"])
    found = attention(text, ", bool[5,7] m", low=np.float32(-1e9))
    assert found.kinds == ["Transpose", "Where", "dso.Attention"]


@pytest.mark.parametrize("low", [-np.inf, LOWEST, -1e9])
def test_a_mask_of_later_keys_is_computed(low: float) -> None:
    """It is not stored."""
    later = np.triu(np.full((5, 7), low, np.float32), 1)
    found = attention("s = MatMul(q, k) b = Add(s, m) p = Softmax(b)", m=later[None, None])
    assert found.attributes("Attention")["is_causal"] == 1
    assert not found.model.graph.initializers
    assert summary(found.model, ["m"]) == {"m": "a causal mask, which is computed"}


@pytest.mark.parametrize(
    "text",
    [
        "s = MatMul(q, k) a = Add(s, m) b = Mul(a, half) p = Softmax(b)",
        "s = MatMul(q, k) b = Where(c, s, half) p = Softmax(b)",
        "s = MatMul(q, k) p = Softmax<axis=2>(s)",
        "s = MatMul(q, k) b = Tanh(s) p = Softmax(b)",
        "s = MatMul(q, k) b = Add(s, one) p = Softmax(b)",
        "s = MatMul(q, k) b = Add(s, two) p = Softmax(b)",
        "s = MatMul(q, k) r = Softmax(s) n = IsNaN(r) p = Where(n, half, r)",
    ],
    ids=["mask first", "no mask", "rows", "capped", "one for all keys", "number", "half"],
)
def test_another_softmax_between_products_remains(text: str) -> None:
    """Each for one reason."""
    weights = {"m": weight(5, 7), "c": np.ones((5, 7), bool), "one": weight(5, 1)}
    assert "Softmax" in attention(text, **weights).kinds


def test_scores_that_others_read_are_computed() -> None:
    """The kernel does not store them."""
    model = make(
        f"""{HEADS.format("")} => (float[] y, float[] p) {{
            s = MatMul(q, k) p = Softmax(s) y = MatMul(p, v)
        }}"""
    )
    assert rewritten(model, fuse_attention).kinds == ["MatMul", "Softmax", "MatMul"]


def test_heads_that_are_batches_are_attention_of_one_head() -> None:
    """The mask gets an axis too."""
    model = make(
        """(float[6,5,4] q, float[6,4,7] k, float[6,7,3] v, float[6,5,7] m) => (float[] y) {
            s = MatMul(q, k) b = Add(s, m) p = Softmax(b) y = MatMul(p, v)
        }"""
    )
    found = rewritten(model, fuse_attention)
    assert found.attributes("Attention")["num_heads"] == 1
    assert tuple(found.node("Attention").outputs[0].shape) == (6, 1, 5, 3)


ROWS = "(float[batch,5,8] q, float[batch,7,{k}] k, float[batch,7,{v}] v{more}) => (float[] y)"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("Attention<q_num_heads=2, kv_num_heads=2>(q, k, v)", ""),
        ("Attention<q_num_heads=2, kv_num_heads=2, scale=0.3>(q, k, v, m)", ", float[5,7] m"),
        ("Attention<q_num_heads=2, kv_num_heads=2>(q, k, v, m)", ", bool[batch,1,5,7] m"),
        ("Attention<q_num_heads=2, kv_num_heads=2, is_causal=1>(q, k, v)", ""),
    ],
)
def test_the_operator_of_onnx_reads_rows(text: str, more: str) -> None:
    """A mask of bool is converted."""
    head = ROWS.format(k=8, v=6, more=more)
    found = rewritten(make(f"{head} {{ y = {text} }}"), fuse_attention_operator, batch=1)
    assert found.kinds[-1] == "dso.Attention"
    attributes = found.attributes("Attention")
    assert (attributes["layout"], attributes["out_layout"]) == ("bsh", "bsh")


def test_heads_may_share_keys_and_values() -> None:
    """Grouped-query attention."""
    text = "Attention<q_num_heads=4, kv_num_heads=2>(q, k, v)"
    found = rewritten(
        make(f"{ROWS.format(k=4, v=4, more='')} {{ y = {text} }}"), fuse_attention_operator
    )
    attributes = found.attributes("Attention")
    assert (attributes["num_heads"], attributes["kv_num_heads"]) == (4, 2)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("y, z = Attention(q, k, v, , a, b)", ", float[1,2,3,4] a, float[1,2,3,4] b"),
        ("y = Attention<softcap=2.0>(q, k, v)", ""),
        ("y = Attention(q, k, v, m)", ", float[5,6] m"),
        ("y, a, b, z = Attention(q, k, v)", ""),
    ],
    ids=["past keys", "softcap", "a mask for some keys", "scores are read"],
)
def test_another_operator_of_onnx_remains(text: str, more: str) -> None:
    """Each for one reason."""
    outputs = "float[1,2,5,4] y" + (", float[1,2,s,t] z" if " z " in text else "")
    model = make(
        f"(float[1,2,5,4] q, float[1,2,7,4] k, float[1,2,7,4] v{more}) => ({outputs}) {{ {text} }}"
    )
    assert fuse_attention_operator(ir.from_proto(model)) == 0


PROJECTED = """(float[batch,5,8] x) => (float[] y) {
    q0 = MatMul(x, wq) q1 = Add(q0, bq) q2 = Reshape(q1, heads) q = Transpose<perm=[0,2,1,3]>(q2)
    k0 = MatMul(x, wk) k1 = Reshape(k0, heads) k = Transpose<perm=[0,2,3,1]>(k1)
    v0 = MatMul(x, wv) v1 = Reshape(v0, heads) v = Transpose<perm=[0,2,1,3]>(v1)
    s = MatMul(q, k) a = Div(s, root) p = Softmax(a) o = MatMul(p, v)
    o1 = Transpose<perm=[0,2,1,3]>(o) o2 = Reshape(o1, rows) o3 = MatMul(o2, wo) y = Add(x, o3)
}"""


def test_no_transpose_is_left_between_projections_and_attention() -> None:
    """As exporters write a layer of an encoder, with a symbolic batch."""
    weights = {f"w{name}": weight(8, 8) for name in "qkvo"}
    weights |= {"bq": weight(8), "root": np.float32(2), "heads": np.array([-1, 5, 2, 4])}
    weights |= {"rows": np.array([-1, 5, 8])}
    split, rows = ("batch", 5, 2, 4), ("batch", 5, 8)
    shapes = {"q2": split, "k1": split, "v1": split, "o2": rows, "o3": rows, "y": rows}
    heads, scores = ("batch", 2, 5, 4), ("batch", 2, 5, 5)
    shapes |= {"q": heads, "k": ("batch", 2, 4, 5), "v": heads, "o": heads, "o1": split}
    shapes |= {"s": scores, "a": scores, "p": scores}
    found = rewritten(named(make(PROJECTED, weights), shapes), rewrite)
    assert found.kinds == [*["dso.MatMul"] * 3, "dso.Attention", "dso.MatMul"]
    attributes = found.attributes("Attention")
    assert (attributes["layout"], attributes["out_layout"]) == ("bsh", "bsh")
