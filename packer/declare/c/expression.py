"""Constant expressions of C: extents of arrays and values of enums."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*")
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: int(a / b), "%": lambda a, b: a - b * int(a / b)},
)
_WIDEST_SHIFT = 64


def evaluate(
    tokens: Sequence[str],
    constant: Callable[[str], int | None],
    size_of: Callable[[str], int | None],
) -> int | None:
    """Compute an integer constant expression.

    Parameters
    ----------
    tokens : sequence of str
        The expression.
    constant : callable
        Returns the value of a name, or None.
    size_of : callable
        Returns the size of a type, or None.

    Returns
    -------
    int or None
        None if the value is unknown, or if an operator is not one of ``| ^ & << >> + - * / %``,
        ``~ - +``, parentheses and sizeof.
    """
    try:
        return _Expression(tokens, constant, size_of).whole()
    except (_UnknownError, ArithmeticError, ValueError, RecursionError):
        return None


class _UnknownError(Exception):
    pass


class _Expression:
    def __init__(
        self,
        tokens: Sequence[str],
        constant: Callable[[str], int | None],
        size_of: Callable[[str], int | None],
    ) -> None:
        self.tokens = [*tokens, ""]
        self.index = 0
        self.constant = constant
        self.size_of = size_of

    def take(self) -> str:
        self.index += 1
        return self.tokens[self.index - 1]

    def whole(self) -> int:
        value = self.level(0)
        if self.tokens[self.index]:
            raise _UnknownError
        return value

    def level(self, number: int) -> int:
        if number == len(_LEVELS):
            return self.unary()
        value = self.level(number + 1)
        while (sign := self.tokens[self.index]) in _LEVELS[number]:
            self.take()
            right = self.level(number + 1)
            if sign in ("<<", ">>") and not 0 <= right < _WIDEST_SHIFT:
                raise _UnknownError
            value = _LEVELS[number][sign](value, right)
        return value

    def unary(self) -> int:
        token = self.take()
        if token in ("-", "+", "~"):
            value = self.unary()
            return {"-": -value, "+": value, "~": ~value}[token]
        if token == "(":
            value = self.level(0)
            if self.take() != ")":
                raise _UnknownError
            return value
        if token == "sizeof":
            return self.known(self.size_of(self.bracketed()))
        if match := _INTEGER.fullmatch(token):
            digits = match[1]
            return int(digits, 8 if re.fullmatch("0[0-7]+", digits) else 0)
        return self.known(self.constant(token))

    def bracketed(self) -> str:
        if self.take() != "(":
            raise _UnknownError
        start = self.index
        while self.tokens[self.index] not in (")", ""):
            self.take()
        self.take()
        return " ".join(self.tokens[start : self.index - 1])

    def known(self, value: int | None) -> int:
        if value is None:
            raise _UnknownError
        return value


def constants_of(tokens: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Split the body of an enum into names and the tokens of their values."""
    made: list[tuple[str, tuple[str, ...]]] = []
    item: list[str] = []
    depth = 0
    for token in (*tokens, ","):
        depth += (token in "([{") - (token in ")]}")
        if token == "," and depth == 0:
            if item:
                made.append((item[0], tuple(item[2:])))
            item = []
        else:
            item.append(token)
    return tuple(made)
