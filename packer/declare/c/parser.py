"""The syntax of C declarations: text to types, one declaration at a time.

Only declarations are read; bodies and initialisers are skipped by their braces. A name where a
type is expected is the name of a type, so that no list of typedefs is needed. Extensions of GNU
that do not change a type are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expression import constants_of
from .token_reader import DEEPEST, TokenReader
from .token_reader import CSyntaxError as CSyntaxError
from .tokens import (
    IGNORED,
    INLINE,
    NUMBER_WORDS,
    OTHER_TYPES,
    QUALIFIERS,
    RESERVED,
    STORAGE,
    SYNONYMS,
    TAGGED,
    WITH_PARENTHESES,
    is_word,
)
from .types import Array, CType, Declared, Function, Named, Pointer, Tagged


def parse_declaration(text: str, attributes: str = "") -> list[Declared]:
    """Parse one declaration, or the head of a function's definition.

    `attributes` are those that every struct in it has besides its own.
    """
    parser = _Parser(text, attributes)
    declared = parser.declaration()
    parser.end()
    return declared


def parse_function_type(text: str) -> Function:
    """Parse a function type without a name: ``int(int a)``."""
    parser = _Parser(text)
    storage, base = parser.specifiers()
    if storage:
        parser.refuse("a storage class, expected a type")
    base = parser.pointers(base)
    if parser.next != "(":
        parser.refuse("expected (")
    function = parser.parameters(base)
    parser.end()
    return function


class _Parser(TokenReader):
    def __init__(self, text: str, attributes: str = "") -> None:
        super().__init__(text)
        self.outer = attributes
        self.attributes: list[str] = []  # of the declaration or the struct that is being read

    def extensions(self) -> None:
        """Take attributes, labels and words that do not change a type."""
        while True:
            if self.next in WITH_PARENTHESES:
                self.attributes.append(self.take())
                while self.next in QUALIFIERS:
                    self.take()
                words = self.balanced("(", ")")
                if unread := OTHER_TYPES.intersection(words):
                    self.refuse(f"the attribute {unread.pop()}")
                self.attributes += [word for word in words if word[0] != '"']
            elif self.next in IGNORED:
                self.take()
                if self.next == "(" and self.tokens[self.index - 1].text == "noexcept":
                    self.balanced("(", ")")
            else:
                return

    def declaration(self) -> list[Declared]:
        position = self.tokens[self.index].position
        before, self.attributes = self.attributes, []
        storage, base = self.specifiers()
        made = []
        while self.next not in (";", "{", ""):
            name, type_ = self.declarator(base)
            bits = self.accept(":")
            if bits:
                self.skip_expression()
            self.extensions()
            if self.accept("="):
                self.skip_expression()
            attributes = " ".join(self.attributes)
            made.append(Declared(name, type_, storage, bits, position, attributes))
            if not self.accept(","):
                break
        if self.next == "{":
            self.balanced("{", "}")
        elif self.next:
            self.expect(";")
        self.attributes = before
        return made or [Declared("", base, storage, position=position)]

    def skip_expression(self) -> None:
        while self.next not in (",", ";", ""):
            pairs = {"(": ")", "{": "}", "[": "]"}
            if self.next in pairs:
                self.balanced(self.next, pairs[self.next])
            else:
                self.take()

    def specifiers(self) -> tuple[frozenset[str], CType]:
        storage: set[str] = set()
        quals: list[str] = []
        words: list[str] = []
        tagged: Tagged | None = None
        while True:
            self.extensions()
            word = self.next
            if word in STORAGE or word in INLINE:
                storage.add("inline" if word in INLINE else word)
            elif word in QUALIFIERS:
                quals.append(QUALIFIERS[word])
            elif word in TAGGED and not words and not tagged:
                tagged = self.tagged()
                continue
            elif (word in NUMBER_WORDS or self.is_complex(words)) and not tagged:
                words.append("_Complex" if word == "complex" else SYNONYMS.get(word, word))
            elif is_word(word) and word not in RESERVED and not words and not tagged:
                words.append(word)
            else:
                break
            self.take()
        if tagged:
            return frozenset(storage), tagged._replace(quals=tuple(quals))
        if not words:
            self.refuse("a type is missing or unknown")
        return frozenset(storage), Named(tuple(words), tuple(quals))

    def is_complex(self, words: Sequence[str]) -> bool:
        """Return True at the macro of <complex.h>."""
        floats = ("float", "double")
        following = self.tokens[self.index + 1].text if self.next else ""
        return self.next == "complex" and (bool(set(words) & {*floats}) or following in floats)

    def tagged(self) -> Tagged:
        kind = self.take()
        before, self.attributes = self.attributes, [self.outer]
        self.extensions()
        tag = self.take() if is_word(self.next) else ""
        if self.next != "{":
            if not tag:
                self.refuse(f"expected the name of a {kind}")
            self.attributes = before
            return Tagged(kind, tag)
        members: list[Declared] | None = None
        constants: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if kind == "enum":
            constants = constants_of(self.balanced("{", "}"))
        else:
            self.take()
            self.deeper()
            members = []
            while not self.accept("}"):
                if not self.accept(";"):
                    members += self.declaration()
            self.depth -= 1
        self.extensions()
        attributes, self.attributes = " ".join(self.attributes).strip(), before
        body = None if members is None else tuple(members)
        return Tagged(kind, tag, (), body, constants, attributes)

    def pointers(self, base: CType) -> CType:
        start = self.index
        while self.accept("*"):
            base = Pointer(base, self.qualifiers())
            if self.index - start > DEEPEST:
                self.refuse("nested too deep")
        return base

    def qualifiers(self) -> tuple[str, ...]:
        quals = []
        self.extensions()
        while self.next in QUALIFIERS:
            quals.append(QUALIFIERS[self.take()])
            self.extensions()
        return tuple(quals)

    def declarator(self, base: CType) -> tuple[str, CType]:
        """Parse a name with the operators around it; the name may be missing."""
        self.deeper()
        self.extensions()
        base = self.pointers(base)
        self.extensions()
        inner = -1
        name = ""
        if self.next == "(" and self.is_nested():
            inner = self.index + 1
            self.balanced("(", ")")
        elif is_word(self.next) and self.next not in RESERVED:
            name = self.take()
        base = self.suffixes(base)
        if inner >= 0:
            after, self.index = self.index, inner
            name, base = self.declarator(base)
            self.expect(")")
            self.index = after
        self.depth -= 1
        return name, base

    def is_nested(self) -> bool:
        """Return True at a parenthesis around a declarator, not around parameters."""
        following = self.tokens[self.index + 1].text
        after = self.tokens[self.index + 2].text if following else ""
        if following in WITH_PARENTHESES or following in ("*", "(", "["):
            return True
        return is_word(following) and following not in RESERVED and after in (")", "(", "[")

    def suffixes(self, base: CType) -> CType:
        if self.next == "[":
            self.deeper()
            made = Array(base, self.balanced("[", "]"))
            made = made._replace(item=self.suffixes(base))
            self.depth -= 1
            return made
        if self.next == "(":
            before = self.index
            self.balanced("(", ")")
            base = self.suffixes(base)
            after, self.index = self.index, before
            function = self.parameters(base)
            self.index = after
            return function
        return base

    def parameters(self, result: CType) -> Function:
        self.expect("(")
        self.deeper()
        made: list[Declared] = []
        is_variadic = False
        while self.next != ")":
            if self.next == "...":
                self.take()
                is_variadic = True
                break
            position = self.tokens[self.index].position
            storage, base = self.specifiers()
            name, type_ = self.declarator(base)
            self.extensions()
            made.append(Declared(name, type_, storage, position=position))
            if not self.accept(","):
                break
            if self.next == ")":
                self.refuse()
        self.expect(")")
        self.depth -= 1
        nothing = len(made) == 1 and not made[0].name and made[0].type == Named(("void",))
        words = [token.text for token in self.tokens[self.index : self.index + 2]]
        is_noexcept = words[:1] == ["noexcept"] and words[1:] != ["("]
        return Function(result, () if nothing else tuple(made), is_variadic, is_noexcept)
