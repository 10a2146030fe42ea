"""Constant expressions of C, which pycparser reads: extents of arrays and values of enums."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

_PLAIN = re.compile(r"0|[1-9][0-9]{0,18}")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*")
_LONGEST = 4096
_SHIFTS = range(64)
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "!": operator.not_
}  # fmt: skip
_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_,
    "<<": lambda a, b: a << _SHIFTS.index(b), ">>": lambda a, b: a >> _SHIFTS.index(b),
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda a, b: _quotient(a, b), "%": lambda a, b: a - b * _quotient(a, b),
    "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
}  # fmt: skip


def evaluate(tokens: Sequence[str], constant: Callable[[str], int | None]) -> int | None:
    """Compute an integer constant expression; `constant` returns the value of a name, or None.

    None is returned if the value is unknown, as that of a sizeof, a cast or a very long text is.
    """
    text = " ".join(tokens)
    if len(text) > _LONGEST:
        return None
    if _PLAIN.fullmatch(text):
        return int(text)
    if text.isidentifier():
        return constant(text)
    from pycparser.c_parser import CParser, ParseError

    try:
        (declared,) = CParser().parse(f"int x[{text}];").ext
        return int(_value(declared.type.dim, constant))
    except (ParseError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError):
        return None


def _value(node: Any, constant: Callable[[str], int | None]) -> int:
    kind = type(node).__name__
    if kind == "BinaryOp":
        return _BINARY[node.op](_value(node.left, constant), _value(node.right, constant))
    if kind == "UnaryOp":
        return _UNARY[node.op](_value(node.expr, constant))
    if kind == "TernaryOp":
        return _value(node.iftrue if _value(node.cond, constant) else node.iffalse, constant)
    found = constant(node.name) if kind == "ID" else None
    match = _INTEGER.fullmatch(node.value) if kind == "Constant" else None
    if match:
        found = int(match[1], 8 if re.fullmatch("0[0-7]+", match[1]) else 0)
    if found is None:
        raise ValueError
    return found


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
