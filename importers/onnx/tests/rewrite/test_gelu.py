"""GELU, spelled out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dso_packer_onnx.rewrite.gelu import fuse_gelu

from ..support.rewriting import make, rewritten, unchanged

NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "half": 0.5,
    "root2": math.sqrt(2),
    "rootHalf": math.sqrt(0.5),
    "c": 0.044715,
    "r": math.sqrt(2 / math.pi),
    "wrong": 0.7,
}
WEIGHTS = {name: np.array(number, np.float32) for name, number in NUMBERS.items()}
ERF = "a = Div(x, root2) e = Erf(a) s = Add(e, one) "
CUBE = "q = Pow(x, three) d = Mul(c, q) i = Add(x, d) a = Mul(r, i) e = Tanh(a) s = Add(one, e) "


@pytest.mark.parametrize(
    ("text", "approximate"),
    [
        (ERF + "h = Mul(x, s) y = Mul(h, half)", "none"),
        (ERF + "h = Mul(half, s) y = Mul(x, h)", "none"),
        (ERF + "h = Mul(x, half) y = Mul(h, s)", "none"),
        (ERF + "h = Div(s, two) y = Mul(h, x)", "none"),
        (ERF + "h = Div(x, two) y = Mul(s, h)", "none"),
        ("a = Mul(rootHalf, x) e = Erf(a) s = Add(one, e) h = Mul(x, half) y = Mul(h, s)", "none"),
        (CUBE + "h = Mul(x, half) y = Mul(h, s)", "tanh"),
        (
            "q = Mul(x, x) p = Mul(q, x) d = Mul(p, c) i = Add(d, x) a = Mul(i, r) e = Tanh(a) "
            "s = Add(e, one) h = Mul(half, x) y = Mul(h, s)",
            "tanh",
        ),
        (
            "q = Mul(x, x) p = Mul(q, c) d = Add(p, one) m = Mul(x, r) a = Mul(m, d) e = Tanh(a) "
            "s = Add(e, one) h = Mul(s, x) y = Mul(h, half)",
            "tanh",
        ),
    ],
)
def test_a_gelu_in_any_order_is_one_operator(text: str, approximate: str) -> None:
    """By Erf as PyTorch writes it, and by Tanh."""
    found = rewritten(make(f"(float[batch,6] x) => (float[] y) {{ {text} }}", WEIGHTS), fuse_gelu)
    assert found.kinds == ["Gelu"]
    assert found.attributes("Gelu")["approximate"] == approximate


@pytest.mark.parametrize(
    "text",
    [
        "a = Mul(x, wrong) e = Erf(a) s = Add(e, one) h = Mul(x, half) y = Mul(h, s)",
        "a = Div(x, root2) e = Erf(a) s = Add(e, two) h = Mul(x, half) y = Mul(h, s)",
        ERF + "h = Mul(x, two) y = Mul(h, s)",
        ERF + "n = Neg(x) h = Mul(n, half) y = Mul(h, s)",
        CUBE + "t = Mul(x, x) h = Mul(t, half) y = Mul(h, s)",
        "q = Pow(x, two) d = Mul(c, q) i = Add(x, d) a = Mul(r, i) e = Tanh(a) s = Add(one, e) "
        "h = Mul(x, half) y = Mul(h, s)",
    ],
    ids=["argument", "not one", "not half", "of another value", "squared", "square for cube"],
)
def test_another_function_remains(text: str) -> None:
    """Each differs in one place."""
    assert unchanged(make(f"(float[batch,6] x) => (float[] y) {{ {text} }}", WEIGHTS), fuse_gelu)
