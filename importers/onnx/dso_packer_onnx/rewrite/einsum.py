"""Einsum of two tensors as a product of matrices between transposes."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from .graph import Dim, dims, is_float32, is_node, new_node, new_weight, replace

_EQUATION = re.compile(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)")


class _Letters(NamedTuple):
    """The letters of an equation, by what becomes of them: all in the order of the output."""

    batch: str
    left: str
    right: str
    summed: str

    @classmethod
    def of(cls, a: str, b: str, out: str) -> _Letters | None:
        """Sort the letters; None if one is repeated in a term or is summed in one tensor alone."""
        if any(len(set(term)) != len(term) for term in (a, b, out)):
            return None
        summed = "".join(letter for letter in a if letter in b and letter not in out)
        alone = [letter for letter in a + b if (letter in a) != (letter in b) and letter not in out]
        if alone or not summed or set(out) - set(a + b):
            return None
        both = "".join(letter for letter in out if letter in a and letter in b)
        left = "".join(letter for letter in out if letter in a and letter not in b)
        right = "".join(letter for letter in out if letter in b and letter not in a)
        return cls(both, left, right, summed)


def expand_einsum(model: ir.Model) -> int:
    """Replace each float32 Einsum of two tensors that is a product of matrices; return how many.

    The factors become (batch, left, summed) and (batch, summed, right). An ellipsis, a diagonal
    and a sum over one tensor alone remain.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Einsum") or len(node.inputs) != 2 or not is_float32(*node.inputs):
            continue
        found = _EQUATION.fullmatch((node.attributes.get_string("equation") or "").replace(" ", ""))
        letters = _Letters.of(*found.groups()) if found else None
        if found is None or letters is None:
            continue
        extents = _extents(node, found.group(1), found.group(2))
        if extents is None:
            continue
        replace(node, _product(model, node, found.groups(), letters, extents))
        count += 1
    return count


def _extents(node: ir.Node, a: str, b: str) -> dict[str, Dim] | None:
    """Return the extent of each letter; at most one is symbolic."""
    extents: dict[str, Dim] = {}
    for term, value in zip((a, b), node.inputs, strict=True):
        shape = dims(value)
        if shape is None or len(shape) != len(term):
            return None
        for letter, extent in zip(term, shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                return None  # an extent of 1 that is repeated
    symbolic = [letter for letter, extent in extents.items() if not isinstance(extent, int)]
    return extents if len(symbolic) <= 1 else None


def _product(
    model: ir.Model,
    node: ir.Node,
    terms: tuple[str, ...],
    letters: _Letters,
    extents: dict[str, Dim],
) -> list[ir.Node]:
    a, b, out = terms
    batch, left, right, summed = letters
    nodes: list[ir.Node] = []

    def transposed(value: ir.Value | None, before: str, after: str) -> ir.Value:
        perm = [before.index(letter) for letter in after]
        shape = [extents[letter] for letter in after]
        nodes.append(new_node("Transpose", [value], {"perm": perm}, shape=shape))
        return nodes[-1].outputs[0]

    def arranged(value: ir.Value | None, term: str, groups: tuple[str, ...]) -> ir.Value:
        """Transpose a tensor to these groups of letters, and make each group one axis."""
        turned = transposed(value, term, "".join(groups))
        return _reshaped(model, nodes, turned, [_joined(group, extents) for group in groups])

    factors = [arranged(node.inputs[0], a, (batch, left, summed))]
    factors.append(arranged(node.inputs[1], b, (batch, summed, right)))
    shape = [_joined(group, extents) for group in (batch, left, right)]
    nodes.append(new_node("MatMul", factors, shape=shape))
    order = batch + left + right
    whole = _reshaped(model, nodes, nodes[-1].outputs[0], [extents[i] for i in order])
    transposed(whole, order, out)
    return nodes


def _joined(group: str, extents: dict[str, Dim]) -> Dim:
    """Return the product of the extents of a group; a symbolic one if it is alone, or all are 1."""
    fixed, symbolic = 1, None
    for letter in group:
        extent = extents[letter]
        if isinstance(extent, int):
            fixed *= extent
        else:
            symbolic = extent
    if symbolic is None:
        return fixed
    return symbolic if fixed == 1 else ir.SymbolicDim(f"{fixed}*{symbolic.value}")


def _reshaped(model: ir.Model, nodes: list[ir.Node], value: ir.Value, shape: list[Dim]) -> ir.Value:
    target = np.array([extent if isinstance(extent, int) else -1 for extent in shape], np.int64)
    constant = new_weight(model, f"{value.name or 'einsum'}.shape", target)
    nodes.append(new_node("Reshape", [value, constant], shape=shape))
    return nodes[-1].outputs[0]
