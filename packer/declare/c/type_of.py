"""The type of an expression in ``typeof``; the compiler confirms it with the declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .expression import BINARY, RANKS, NotConstantError, value_of
from .literals import LiteralError
from .numbers import enum_code, number_code
from .parser import CSyntaxError, parse_declaration
from .tokens import NUMBER_WORDS, QUALIFIERS, TAGGED, is_word, tokens_of
from .types import Array, CType, Function, Named, Pointer, Tagged

if TYPE_CHECKING:
    from .scope import Scope

_WORDS = {"i32": "int", "u32": "unsigned", "i64": "long", "u64": "unsigned long", "f32": "float"}
_WORDS |= {"f64": "double", "f80": "long double"}
_CHAR = Named(("char",))


def type_of(text: str, scope: Scope) -> CType | None:
    """Return the type that ``typeof(text)`` names; None for an expression that is not read."""
    reader = _Reader([token.text for token in tokens_of(text)], scope)
    try:
        found = reader.type_name() if reader.is_type() else reader.conditional()
    except (LookupError, CSyntaxError, NotConstantError, LiteralError, RecursionError):
        return None
    return found if not reader.next else None


class _Reader:
    def __init__(self, tokens: list[str], scope: Scope) -> None:
        self.tokens, self.index, self.scope = [*tokens, ""], 0, scope

    @property
    def next(self) -> str:
        return self.tokens[self.index]

    def take(self, expected: str = "") -> str:
        token = self.next
        if not token or expected not in ("", token):
            raise LookupError(expected)
        self.index += 1
        return token

    def is_type(self) -> bool:
        is_word_of_type = self.next in NUMBER_WORDS | QUALIFIERS | TAGGED
        return is_word_of_type or self.scope.has_typedef(self.next)

    def type_name(self) -> CType:
        words = []
        while self.next and self.next != ")":
            words.append(self.take())
        (declared,) = parse_declaration(" ".join([*words, "x;"]))
        return declared.type

    def conditional(self) -> CType:
        found = self.binary(1)
        if self.next != "?":
            return found
        self.take()
        chosen = self.conditional()
        self.take(":")
        return self.arithmetic(chosen, self.conditional())

    def binary(self, lowest: int) -> CType:
        left = self.unary()
        while (level := BINARY.get(self.next, 0)) >= lowest:
            symbol = self.take()
            right = self.binary(level + 1)
            if level in (1, 2, 6, 7):
                left = Named(("int",))
            else:
                left = self.arithmetic(left, left if level == 8 else right, symbol)
        return left

    def arithmetic(self, left: CType, right: CType, symbol: str = "") -> CType:
        """Return the common type of two operands."""
        pointers = [t for t in map(self.decayed, (left, right)) if isinstance(t, Pointer)]
        if pointers:
            is_difference = len(pointers) == 2 and symbol == "-"
            return Named(("long",)) if is_difference else pointers[0]
        code = max(self.rank(left), self.rank(right), key=RANKS.index)
        return Named(tuple(_WORDS[code].split()))

    def decayed(self, type_: CType) -> CType:
        found = self.scope.resolved(type_)
        return Pointer(found.item) if isinstance(found, Array) else found

    def rank(self, type_: CType) -> str:
        """Return the code of a number after the integer promotions."""
        found = self.scope.resolved(type_)
        if isinstance(found, Tagged) and found.kind == "enum":
            return enum_code(found, self.scope)
        code = (number_code(found.words) if isinstance(found, Named) else None) or ""
        code = "f80" if code == "longdouble" else code
        if code in RANKS:
            return code
        if code in ("bool", "char", "i8", "u8", "i16", "u16"):
            return "i32"
        raise LookupError(code)

    def unary(self) -> CType:
        if (token := self.take()) == "&":
            return Pointer(self.unary())
        if token == "*":
            return self.target(self.unary())
        if token in "-+~!":
            operand = self.unary()
            return Named(("int",)) if token == "!" else self.arithmetic(operand, operand)
        if token in ("sizeof", "_Alignof", "alignof"):
            self.operand_of_size()
            return Named(("unsigned", "long"))
        if token != "(":
            return self.postfix(self.primary(token))
        if self.is_type():
            cast = self.type_name()
            self.take(")")
            self.unary()
            return cast
        inner = self.conditional()
        self.take(")")
        return self.postfix(inner)

    def operand_of_size(self) -> None:
        start = self.index
        if self.next == "(":
            self.take()
            if self.is_type():
                self.type_name()
                self.take(")")
                return
        self.index = start
        self.unary()

    def target(self, type_: CType) -> CType:
        found = self.decayed(type_)
        return found.target if isinstance(found, Pointer) else _function(found)

    def primary(self, token: str) -> CType:
        if token[-1] == '"':
            return Pointer(_CHAR)
        if not is_word(token):
            value = value_of([token], lambda _: None, lambda _: "")
            return Named(tuple(_WORDS[getattr(value, "code", "")].split()))
        if self.scope.constant(token) is not None:
            return Named(("int",))
        return self.scope.object_type(token)

    def postfix(self, type_: CType) -> CType:
        while self.next in ("[", "(", ".") or self.tokens[self.index :][:2] == ["-", ">"]:
            if (token := self.take()) in "[(":
                end = "]" if token == "[" else ")"
                while self.next != end:
                    self.conditional()
                    if self.next == ",":
                        self.take()
                self.take(end)
                type_ = self.target(type_) if token == "[" else self.called(type_)
            else:
                if token == "-":
                    self.take(">")
                    type_ = self.target(type_)
                type_ = self.member(type_, self.take())
        return type_

    def called(self, type_: CType) -> CType:
        found = self.decayed(type_)
        return _function(self.scope.resolved(self.target(found))).result

    def member(self, type_: CType, name: str) -> CType:
        found = self.scope.resolved(type_)
        for member in (found.members or ()) if isinstance(found, Tagged) else ():
            if member.name == name:
                return member.type
            if not member.name:
                try:
                    return self.member(member.type, name)
                except LookupError:
                    continue
        raise LookupError(name)


def _function(type_: CType) -> Function:
    if isinstance(type_, Function):
        return type_
    raise LookupError(type_)
