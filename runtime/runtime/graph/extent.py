"""Values of extents that a record writes as expressions: ``"4*seq"``, ``"floor(h/2) + 1"``."""

from __future__ import annotations

import ast
from fractions import Fraction
from math import floor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": lambda a: Fraction(floor(a)),
    "Max": max,
    "Min": min,
    "Mod": lambda a, b: a % b,
}
_MOST_LENGTH = 10_000  # of a text, which a library may contain


def extent_at(extent: int | str, symbols: Mapping[str, int]) -> int | None:
    """Return an extent for values of its symbols; None if it is not known."""
    if isinstance(extent, int) or extent in symbols:
        return extent if isinstance(extent, int) else symbols[extent]
    if len(extent) > _MOST_LENGTH:
        return None
    try:
        found = _value(ast.parse(extent, mode="eval").body, symbols)
    except (SyntaxError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError):
        return None
    return int(found) if found.denominator == 1 else None


def _value(node: ast.AST, symbols: Mapping[str, int]) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.Name):
        return Fraction(symbols[node.id])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, symbols)
    if isinstance(node, ast.BinOp):
        operands = _value(node.left, symbols), _value(node.right, symbols)
        return Fraction(_OPERATORS[type(node.op)](*operands))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return Fraction(_FUNCTIONS[node.func.id](*(_value(one, symbols) for one in node.args)))
    raise ValueError(f"{type(node).__name__} in an extent")
