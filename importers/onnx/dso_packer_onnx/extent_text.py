"""Texts of extents as expressions of sympy, whose symbols are integers of at least 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy

# Names may have dots, also before a digit (ids.45_dim_1), which names of Python do not.
_NAME = re.compile(r"(?<!\w)[^\W\d][\w.]*(?![\w.]| *\()")
_FUNCTIONS = {"floor": "floor", "max": "Max", "min": "Min", "mod": "Mod"}  # also as sympy writes
_FUNCTIONS |= {name: name for name in _FUNCTIONS.values()}
_MOST_POWER = 16  # of a text that a model may have: 9**9**9 takes for ever


@cache
def parsed(text: str) -> sympy.Expr:
    """Return an expression; ValueError for another text, as a name with spaces."""
    import sympy

    identifiers = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(_NAME.findall(text)))}
    names = {identifier: name for name, identifier in identifiers.items()}
    plain = _NAME.sub(lambda found: identifiers[found[0]], text)
    try:
        found = _made(ast.parse(plain.strip(), mode="eval").body, names)
    except (SyntaxError, RecursionError, MemoryError, TypeError, ZeroDivisionError):
        found = sympy.zoo
    if found.has(sympy.zoo, sympy.nan, -sympy.oo, sympy.oo):
        raise ValueError(f"{text!r}: expected an expression of extents")
    return found


def _made(node: ast.expr, names: Mapping[str, str]) -> Any:
    import sympy

    match node:
        case ast.Constant(value=int(number)):
            return sympy.Integer(number)
        case ast.Name(id=identifier) if identifier in names:
            return sympy.Symbol(names[identifier], integer=True, nonnegative=True)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_made(operand, names)
        case ast.BinOp(left=left, op=operator, right=right):
            return _joined(operator, _made(left, names), _made(right, names))
        case ast.Call(func=ast.Name(id=name), args=[*args], keywords=[]) if name in _FUNCTIONS:
            return getattr(sympy, _FUNCTIONS[name])(*(_made(one, names) for one in args))
    return sympy.nan


def _joined(operator: ast.operator, a: Any, b: Any) -> Any:
    import sympy

    match operator:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div():
            return a / b
        case ast.FloorDiv():
            return sympy.floor(a / b)
        case ast.Mod():
            return sympy.Mod(a, b)
        case ast.Pow() if b.is_Integer and 0 <= b <= _MOST_POWER:
            return a**b
    return sympy.nan
