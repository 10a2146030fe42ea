"""Chains of Reshape and Transpose, shortened."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.arrange import simplify_views

from ..support.rewriting import make, named, rewritten, unchanged

SHAPES = {
    "all": [-1],
    "flat": [6, 20],
    "back": [2, 3, 4, 5],
    "batch": [-1, 60],
    "heads": [-1, 3, 4, 5],
    "pairs": [-1, 3, 2, 2, 5],
    "axis": [1],
    "one": [1],
}
WEIGHTS = {name: np.array(shape, np.int64) for name, shape in SHAPES.items()}


@pytest.mark.parametrize(
    ("chain", "left"),
    [
        ("Transpose<perm=[0,2,1,3]>(x) | Transpose<perm=[0,2,1,3]>(_)", []),
        ("Transpose<perm=[3,0,1,2]>(x) | Transpose<perm=[1,2,3,0]>(_)", []),
        ("Transpose<perm=[0,2,3,1]>(x) | Transpose<perm=[0,2,3,1]>(_)", ["Transpose"]),
        ("Reshape(x, flat) | Reshape(_, back)", []),
        ("Reshape(x, all) | Reshape(_, flat)", ["Reshape"]),
        ("Unsqueeze(x, axis) | Squeeze(_, axis)", []),
        ("Unsqueeze(x, one) | Transpose<perm=[0,2,3,4,1]>(_) | Flatten<axis=2>(_)", ["Reshape"]),
        ("Identity(x) | Identity(_)", []),
    ],
)
def test_a_chain_is_as_short_as_it_can_be(chain: str, left: list[str]) -> None:
    """One Transpose at most, and a Reshape where it is needed."""
    parts = chain.split(" | ")
    lines = [
        f"v{i + 1} = {part.replace('(_', f'(v{i}').replace('(x', '(r')}"
        for i, part in enumerate(parts)
    ]
    text = " ".join(lines)
    model = make(
        f"(float[2,3,4,5] x) => (float[] y) {{ r = Relu(x) {text} y = Exp(v{len(parts)}) }}",
        WEIGHTS,
    )
    assert rewritten(model, simplify_views).kinds == ["Relu", *left, "Exp"]


def test_a_symbolic_batch_is_kept_through_a_chain() -> None:
    """It is -1 in the only Reshape."""
    model = make(
        """(float[batch,3,4,5] x) => (float[] y) {
            a = Transpose<perm=[0,2,1,3]>(x) b = Reshape<allowzero=0>(a, batch)
            c = Reshape(b, swapped) d = Transpose<perm=[0,2,1,3]>(c) y = Reshape(d, pairs)
        }""",
        {**WEIGHTS, "swapped": np.array([-1, 4, 3, 5])},
    )
    known = {"b": ("batch", 60), "c": ("batch", 4, 3, 5), "d": ("batch", 3, 4, 5)}
    found = rewritten(named(model, {**known, "y": ("batch", 3, 2, 2, 5)}), simplify_views, batch=7)
    assert found.kinds == ["Reshape"]
    assert found.node("Reshape").inputs[1].const_value.numpy().tolist() == [-1, 3, 2, 2, 5]


def test_axes_of_heads_and_batch_that_were_joined_are_found_again() -> None:
    """As in attention with the rows first, where heads * batch is one axis."""
    model = make(
        """(float[5,batch,12] x) => (float[] y) {
            a = Reshape(x, joined) b = Transpose<perm=[1,0,2]>(a) c = Reshape(b, apart)
            y = Transpose<perm=[2,0,1,3]>(c)
        }""",
        {"joined": np.array([5, -1, 4]), "apart": np.array([-1, 3, 5, 4])},
    )
    shapes = {
        "a": (5, "3*batch", 4),
        "b": ("3*batch", 5, 4),
        "c": ("batch", 3, 5, 4),
        "y": (5, "batch", 3, 4),
    }
    found = rewritten(named(model, shapes), simplify_views)
    assert found.kinds == ["Reshape"]


def test_a_value_that_others_read_remains_for_them() -> None:
    """The rest of the chain is gone."""
    model = make(
        """(float[2,3,4,5] x) => (float[] y, float[] z) {
            t = Transpose<perm=[0,2,1,3]>(x) u = Transpose<perm=[0,2,1,3]>(t) y = Exp(u) z = Exp(t)
        }"""
    )
    assert sorted(rewritten(model, simplify_views).kinds) == ["Exp", "Exp", "Transpose"]


def test_an_output_keeps_its_name() -> None:
    """It is the base of the chain then."""
    model = make(
        """(float[2,3,4,5] x) => (float[] y) {
            r = Relu(x) t = Transpose<perm=[0,2,1,3]>(r) y = Transpose<perm=[0,2,1,3]>(t)
        }"""
    )
    assert rewritten(model, simplify_views).kinds == ["Relu"]


@pytest.mark.parametrize(
    "text",
    [
        "t = Transpose<perm=[0,2,1,3]>(x) y = Exp(t)",
        "t = Transpose<perm=[0,2,1,3]>(x) y = Reshape(t, flat)",
        "t = Reshape(x, flat) u = Transpose<perm=[1,0]>(t) y = Reshape(u, back)",
        "t = Slice(x, one, two) y = Reshape(t, half)",
        "t = Expand(x, more) y = Reshape(t, flat2)",
    ],
)
def test_a_chain_that_is_short_already_remains(text: str) -> None:
    """With views that leave out or repeat elements among them."""
    weights = {
        **WEIGHTS,
        "two": np.array([2]),
        "half": np.array([60]),
        "more": np.array([2, 2, 3, 4, 5]),
        "flat2": np.array([240]),
    }
    assert unchanged(
        make(f"(float[2,3,4,5] x) => (float[] y) {{ {text} }}", weights), simplify_views
    )
