"""Einsum as a product of matrices."""

from __future__ import annotations

import pytest

from dso_packer_onnx.rewrite.einsum import expand_einsum

from ..support.rewriting import make, rewritten, unchanged

EXTENTS = {"b": "batch", "h": "3", "i": "4", "j": "5", "k": "6", "d": "7"}


def text_of(equation: str) -> str:
    """Write a model of one Einsum; the extent of the letter b is symbolic."""
    terms = equation.partition("->")[0].split(",")
    inputs = [
        f"float[{','.join(EXTENTS[letter] for letter in term.strip())}] x{i}"
        for i, term in enumerate(terms)
    ]
    names = ", ".join(f"x{i}" for i in range(len(terms)))
    return f'({", ".join(inputs)}) => (float[] y) {{ y = Einsum<equation="{equation}">({names}) }}'


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik",
        "bij, bkj -> bik",
        "bihd,bjhd->bhij",
        "bhij,bjhd->bihd",
        "bid,khd->bikh",
        "bhij,hji->bh",
        "ij,ij->",
        "ijk,k->ji",
    ],
)
def test_a_sum_over_both_tensors_is_a_product(equation: str) -> None:
    """The letters may have any order."""
    found = rewritten(make(text_of(equation)), expand_einsum)
    assert "MatMul" in found.kinds
    assert "Einsum" not in found.kinds


@pytest.mark.parametrize(
    "equation", ["ii,ij->ij", "ij,jk->k", "ij,kd->ijkd", "ij->ji", "ij,jk,kd->id"]
)
def test_other_equations_remain(equation: str) -> None:
    """A diagonal, a sum over one tensor alone, no sum, and not two tensors."""
    assert unchanged(make(text_of(equation)), expand_einsum)
