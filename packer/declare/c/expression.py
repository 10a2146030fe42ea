"""Constant expressions of C: integers, floats and text, each with its type, as LP64 machines have.

An operand that C leaves undefined (an overflow, a division by zero) has no value; it is an error
only if the result needs it.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .literals import FLOATS, INTEGERS, LiteralError, character, number, text_of
from .tokens import tokens_of

_LONGEST = 4096  # tokens
RANKS = ("i32", "u32", "i64", "u64", "f32", "f64", "f80")
BINARY = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
# The first letters of codes with a size in bits that only sizeof may name: pointers and structs.
OTHERS = ("p", "s")
_SIZES = {"bool": 1, "char": 1, "f80": 16}
_UNARY = ("-", "+", "~", "!")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_BITS: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul
}  # fmt: skip


class NotConstantError(Exception):
    """Tokens that are not a constant expression."""


class UncomputedError(NotConstantError):
    """A constant expression whose value only the compiler knows; the text says which part."""


class Number(NamedTuple):
    """A number of a type: ``i32`` to ``u64``, ``f32``, ``f64``, or ``f80``, a long double."""

    code: str
    value: int | float | None  # None if C leaves it undefined


class Text(NamedTuple):
    """A string literal, without the NUL."""

    data: bytes


Value = Number | Text
Names = Callable[[str], Number | None]
# Returns the code of a type that tokens name; "" if there is no such type; raises UncomputedError.
Types = Callable[[Sequence[str]], str]


def value_of(tokens: Sequence[str], names: Names, types: Types, *, is_cpp: bool = False) -> Value:
    """Compute an expression; `names` returns the values of names, `types` the codes of types.

    In C++ (`is_cpp`) no constant expression shifts a sign bit to the left.

    Raises NotConstantError if it is not constant, or cannot be computed.
    """
    if len(tokens) > _LONGEST:
        raise UncomputedError("a long expression")
    try:
        reader = _Reader(tokens, names, types, is_cpp)
        found = reader.conditional()
        reader.expect("")
    except (LiteralError, RecursionError) as error:
        raise UncomputedError(str(error) or "a deep expression") from None
    if isinstance(found, Number) and found.value is None:
        raise NotConstantError("its value is undefined in C")
    return found


def evaluate(
    tokens: Sequence[str], constant: Callable[[str], int | None], types: Types = lambda _: ""
) -> int | None:
    """Compute an integer; `constant` returns the value of a name, or None if it is unknown.

    None is returned if the value is unknown, as that of a sizeof of a struct is.
    """

    def named(name: str) -> Number | None:
        value = constant(name)
        return None if value is None else integer(value)

    words = [token.text for token in tokens_of(" ".join(tokens))]
    try:
        found = value_of(words, named, types)
    except NotConstantError:
        return None
    return found.value if isinstance(found, Number) and isinstance(found.value, int) else None


def integer(value: int) -> Number:
    """Return the value of a name in an enum: an int, if it fits."""
    for code in ("i32", "u32", "i64", "u64"):
        if value in INTEGERS[code]:
            return Number(code, value)
    raise UncomputedError("an integer of more than 64 bits")


def converted(operand: Number, code: str) -> Number:
    """Convert a number to a type, as a cast does."""
    value = operand.value
    if code[0] in OTHERS:
        raise NotConstantError("a pointer")
    if value is None:
        return Number(code, None)
    if code == "char":  # signed on some machines
        if not 0 <= value < 128:
            raise UncomputedError("a plain char above 127")
        return Number("i32", int(value))
    if code in FLOATS:
        if code == "f80" and float(value) != value:
            raise UncomputedError("a long double")
        return Number(code, _rounded(float(value), code))
    if code == "bool":
        return Number("i32", int(bool(value)))
    bounds = INTEGERS[code]
    if isinstance(value, float):
        whole = int(value)
        return Number(code, whole if whole in bounds else None)
    return Number(code, (value - bounds[0]) % len_of(code) + bounds[0])


def len_of(code: str) -> int:
    """Return how many values an integer type has."""
    return 1 << int(code[1:])


def _rounded(value: float, code: str) -> float | None:
    if code == "f32":
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return None
    return value if abs(value) < float("inf") else None


class _Reader:
    """Reads an expression by the precedence of its operators, and computes it meanwhile."""

    def __init__(self, tokens: Sequence[str], names: Names, types: Types, is_cpp: bool) -> None:
        self.tokens = [*tokens, ""]
        self.index = 0
        self.names, self.types, self.is_cpp = names, types, is_cpp

    @property
    def next(self) -> str:
        return self.tokens[self.index]

    def take(self) -> str:
        self.index += 1
        return self.tokens[self.index - 1]

    def expect(self, token: str) -> None:
        if self.next != token:
            raise NotConstantError(f"expected {token!r}, found {self.next!r}")
        self.index += 1

    def conditional(self) -> Value:
        condition = self.binary(1)
        if self.next != "?":
            return condition
        self.take()
        first = self.conditional()
        self.expect(":")
        second = self.conditional()
        chosen = first if _number(condition).value else second
        if isinstance(first, Text) and isinstance(second, Text):
            return chosen
        common = _common(_number(first), _number(second))
        is_known = _number(condition).value is not None
        return converted(_number(chosen), common) if is_known else Number(common, None)

    def binary(self, lowest: int) -> Value:
        left = self.unary()
        while BINARY.get(self.next, 0) >= lowest:
            symbol = self.take()
            right = self.binary(BINARY[symbol] + 1)
            operands = _number(left), _number(right)
            left = made = _combined(symbol, *operands)
            if self.is_cpp and symbol == "<<" and _shifts_sign(*operands):
                left = Number(made.code, None)
        return left

    def unary(self) -> Value:
        if self.next in _UNARY:
            symbol = self.take()
            return _changed(symbol, _number(self.unary()))
        if self.next == "sizeof":
            return self.size()
        if self.next == "(" and (code := self.type_in_parentheses()):
            return converted(_number(self.unary()), code)._replace(code=_promoted(code))
        return self.primary()

    def type_in_parentheses(self) -> str:
        """Take a type in parentheses; leave any other expression, and return an empty text."""
        end = self.index + 1
        while self.tokens[end] not in ("(", ")", ""):
            end += 1
        code = self.types(self.tokens[self.index + 1 : end]) if self.tokens[end] == ")" else ""
        if code:
            self.index = end + 1
        return code

    def size(self) -> Number:
        self.take()
        if self.next == "(" and (code := self.type_in_parentheses()):
            return Number("u64", _SIZES.get(code) or int(code[1:]) // 8)
        operand = self.unary()
        if isinstance(operand, Text):
            return Number("u64", len(operand.data) + 1)
        raise UncomputedError("sizeof of an expression")

    def primary(self) -> Value:
        token = self.take()
        if token == "(":
            inner = self.conditional()
            self.expect(")")
            return inner
        if token.endswith('"'):
            data = text_of(token)
            while self.next.endswith('"'):
                data += text_of(self.take())
            return Text(data)
        if token.endswith("'"):
            return Number(*character(token))
        if token[:1].isdigit() or token[:1] == ".":
            read = number(token)
            found = Number(*read) if read else None
        else:
            found = self.names(token) if token else None
        if found is None:
            raise NotConstantError(repr(token))
        return found


def _shifts_sign(left: Number, right: Number) -> bool:
    """Return True if the result of a left shift is not that of the product in the type."""
    if left.code[0] != "i" or not left.value or not right.value:
        return bool(left.code[0] == "i" and (left.value or 0) < 0)
    return left.value < 0 or int(left.value) >> max(int(left.code[1:]) - int(right.value), 0) > 0


def _number(value: Value) -> Number:
    if isinstance(value, Text):
        raise NotConstantError("an operator of text")
    return value


def _promoted(code: str) -> str:
    """Return the type as which an operand is used: integers below int are int."""
    return code if code in RANKS else "i32"


def _common(left: Number, right: Number) -> str:
    return max(left.code, right.code, key=RANKS.index)


def _changed(symbol: str, operand: Number) -> Number:
    """Compute an operator of one operand."""
    code, value = operand
    if symbol == "!":
        return Number("i32", None if value is None else int(not value))
    if symbol == "~" and code in FLOATS:
        raise NotConstantError("~ of a float")
    if value is None or symbol == "+":
        return operand
    if symbol == "~":
        return _fitted(code, ~int(value))
    return _fitted(code, -value)


def _fitted(code: str, value: float) -> Number:
    """Return a result: unsigned numbers wrap; a signed overflow is undefined."""
    if code in FLOATS:
        return Number(code, _rounded(float(value), code))
    if code[0] == "u":
        return Number(code, int(value) % len_of(code))
    return Number(code, int(value) if value in INTEGERS[code] else None)


def _combined(symbol: str, left: Number, right: Number) -> Number:
    """Compute an operator of two operands."""
    if symbol in ("&&", "||"):
        return _logical(symbol, left.value, right.value)
    is_shift = symbol in ("<<", ">>")
    code = left.code if is_shift else _common(left, right)
    if FLOATS.intersection((left.code, right.code)):
        if is_shift or symbol in _BITS or symbol == "%":
            raise NotConstantError(f"{symbol} of a float")
        if code == "f80" and symbol not in _COMPARISONS:
            raise UncomputedError("arithmetic of long double")
    left = left if is_shift else converted(left, code)
    right = right if is_shift else converted(right, code)
    a, b = left.value, right.value
    result = "i32" if symbol in _COMPARISONS else code
    if a is None or b is None:
        return Number(result, None)
    if symbol in _COMPARISONS:
        return Number(result, int(_COMPARISONS[symbol](a, b)))
    if symbol in _ARITHMETIC:
        return _fitted(code, _ARITHMETIC[symbol](a, b))
    if symbol == "/" and code in FLOATS:
        return Number(code, _rounded(a / b, code) if b else None)
    return _of_integers(symbol, code, int(a), int(b))


def _of_integers(symbol: str, code: str, a: int, b: int) -> Number:
    if symbol in _BITS:
        return Number(code, _BITS[symbol](a, b))
    if symbol in ("<<", ">>"):
        if not 0 <= b < int(code[1:]):
            return Number(code, None)
        return converted(Number("i64", a << b), code) if symbol == "<<" else Number(code, a >> b)
    if b == 0:
        return Number(code, None)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if symbol == "/" or quotient not in INTEGERS[code]:
        return _fitted(code, quotient)
    return _fitted(code, a - b * quotient)


def _logical(symbol: str, a: float | None, b: float | None) -> Number:
    if a is None or (bool(a) == (symbol == "||")):
        return Number("i32", None if a is None else int(bool(a)))
    return Number("i32", None if b is None else int(bool(b)))
