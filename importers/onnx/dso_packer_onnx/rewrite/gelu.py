"""GELU spelled out, by Erf or by Tanh, becomes the operator Gelu of ONNX."""

from __future__ import annotations

import math

import onnx_ir as ir

from .graph import (
    dims,
    equal_dims,
    is_float32,
    is_node,
    made_by,
    new_node,
    only_use,
    other_input,
    replace,
    scalar,
)

_HALF = math.sqrt(0.5)
_ROOT = math.sqrt(2 / math.pi)
# The argument of the function as a polynomial of x: coefficients by degree.
_ARGUMENTS = {"Erf": [0.0, _HALF, 0.0, 0.0], "Tanh": [0.0, _ROOT, 0.0, _ROOT * 0.044715]}
_DEEPEST = 6  # nodes from the argument to x


def fuse_gelu(model: ir.Model) -> int:
    """Replace x / 2 * (1 + erf(x / sqrt 2)) and its approximation by tanh by Gelu; return how many.

    The factors may be multiplied in any order, and the argument of tanh may be any polynomial of
    nodes with the same coefficients.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Erf", "Tanh") or not is_float32(node.inputs[0]):
            continue
        add = only_use(node.outputs[0])
        if (
            add is None
            or not is_node(add, "Add")
            or scalar(other_input(add, node.outputs[0])) != 1.0
        ):
            continue
        found = _last_factor(add.outputs[0], node)
        if found is None:
            continue
        x, last = found
        approximate = "tanh" if node.op_type == "Tanh" else "none"
        new = new_node("Gelu", [x], {"approximate": approximate}, like=last.outputs[0])
        replace(last, [new])
        count += 1
    return count


def _last_factor(value: ir.Value, function: ir.Node) -> tuple[ir.Value, ir.Node] | None:
    """Follow the products with one half and with x; return x and the last node."""
    number, x = 1.0, None
    while True:
        node = only_use(value)
        if node is None or not is_node(node, "Mul", "Div"):
            return None
        other = other_input(node, value)
        factor = scalar(other)
        if node.op_type == "Div":
            if factor is None or not factor or node.inputs[0] is not value:
                return None
            factor = 1 / factor
        if factor is not None:
            number *= factor
        elif x is None and other is not None:
            found = _base(other, function)
            if found is None:
                return None
            x, number = found[0], number * found[1]
        else:
            return None
        value = node.outputs[0]
        if x is not None and math.isclose(number, 0.5, rel_tol=1e-6):
            fits = equal_dims(dims(x) or (), dims(value) or (None,))
            return (x, node) if fits else None


def _base(value: ir.Value, function: ir.Node) -> tuple[ir.Value, float] | None:
    """Return x and its factor, of a value that is x or x times a number."""
    candidates = [(value, 1.0)]
    made = made_by(value, "Mul", "Div")
    if made is not None:
        for index, number in enumerate(scalar(item) for item in made.inputs):
            if number and made.op_type == "Mul":
                candidates.append((made.inputs[1 - index], number))
            elif number and index == 1:
                candidates.append((made.inputs[0], 1 / number))
    expected = _ARGUMENTS[function.op_type]
    for x, factor in candidates:
        found = _polynomial(function.inputs[0], x, _DEEPEST)
        if found is not None and all(
            math.isclose(a, b, rel_tol=1e-5) for a, b in zip(found, expected, strict=True)
        ):
            return x, factor
    return None


def _polynomial(value: ir.Value | None, x: ir.Value, depth: int) -> list[float] | None:
    """Return the coefficients of a value as a polynomial of x, up to degree 3."""
    if value is x:
        return [0.0, 1.0, 0.0, 0.0]
    number = scalar(value)
    if number is not None:
        return [number, 0.0, 0.0, 0.0]
    node = made_by(value, "Add", "Mul", "Div", "Pow")
    if node is None or not depth:
        return None
    left = _polynomial(node.inputs[0], x, depth - 1)
    if left is None:
        return None
    if node.op_type == "Pow":
        power = scalar(node.inputs[1])
        return _times(left, left if power == 2 else _times(left, left)) if power in (2, 3) else None
    right = _polynomial(node.inputs[1], x, depth - 1)
    if right is None:
        return None
    if node.op_type == "Add":
        return [a + b for a, b in zip(left, right, strict=True)]
    if node.op_type == "Mul":
        return _times(left, right)
    return [a / right[0] for a in left] if right[0] and not any(right[1:]) else None


def _times(left: list[float] | None, right: list[float] | None) -> list[float] | None:
    if left is None or right is None:
        return None
    found = [0.0] * 4
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            if a and b:
                if i + j > 3:
                    return None
                found[i + j] += a * b
    return found
