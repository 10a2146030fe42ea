"""Declarations of GNU C and C++ as the tokens of plain C, which pycparser reads.

A name where a type is expected becomes a keyword, so that no list of typedefs is needed. Storage
classes and attributes become qualifiers, which pycparser keeps. Extents, values and widths become
one name each. Bodies and initialisers are dropped.
"""

from __future__ import annotations

from .token_reader import TokenReader
from .tokens import (
    IGNORED,
    NUMBER_WORDS,
    OTHER_TYPES,
    QUALIFIERS,
    RESERVED,
    STORAGE,
    SYNONYMS,
    WITH_PARENTHESES,
    is_word,
)

ATTRIBUTES = "@"  # begins a qualifier that has the attributes of the declaration
OF_STRUCT = "@@"  # likewise the attributes of the struct before it
_DEEPEST = 200
_KINDS = {
    "(": "LPAREN", ")": "RPAREN", "{": "LBRACE", "}": "RBRACE", "[": "LBRACKET", "]": "RBRACKET",
    ",": "COMMA", ";": "SEMI", ":": "COLON", "=": "EQUALS", "*": "TIMES", "...": "ELLIPSIS",
    "struct": "STRUCT", "union": "UNION", "enum": "ENUM",
}  # fmt: skip


class Symbol:
    """A token of pycparser, whose column is an offset."""

    lineno = 1
    filename = ""

    def __init__(self, kind: str, text: str, position: int) -> None:
        self.type = kind
        self.value = text
        self.column = position


class _Block:
    """The declarations of a file or a struct, or the names of an enum."""

    def __init__(self, kind: str, start: int, own: list[str]) -> None:
        self.kind = kind
        self.own = own  # the attributes of the struct
        self.start = start  # of the declaration that is being read
        self.attributes: list[str] = []
        self.depth = 0  # parentheses


class PlainC(TokenReader):
    """The reader of one declaration."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.symbols: list[Symbol] = []
        self.blocks = [_Block("", 0, [])]
        self.has_type = False  # in the specifiers that are being read
        self.nesting = 0

    @property
    def last(self) -> str:
        return self.symbols[-1].type if self.symbols else ""

    def add(self, kind: str, text: str) -> None:
        """Add a symbol at the place of the token that was taken last."""
        self.symbols.append(Symbol(kind, text, self.tokens[max(self.index - 1, 0)].position))

    def copy(self) -> None:
        token = self.take()
        self.add(_KINDS.get(token, "ID"), token)

    def add_opaque(self, tokens: list[str]) -> None:
        if tokens:
            self.add("ID", "\0".join(tokens))

    def read(self) -> list[Symbol]:
        """Return the declaration's symbols, which a semicolon ends."""
        steps = {
            "(": self.parenthesis, ")": self.end_parenthesis, "{": self.body, "}": self.end_tagged,
            "[": self.extent, ":": self.width, "=": self.initializer, ",": self.comma,
            ";": self.semicolon, "*": self.declarator, "...": self.copy,
            "struct": self.tagged, "union": self.tagged, "enum": self.tagged,
        }  # fmt: skip
        while self.next:
            if self.next in WITH_PARENTHESES or self.next in IGNORED:
                self.blocks[-1].attributes += self.attributes()
            else:
                steps.get(self.next, self.word)()
        if len(self.blocks) > 1:
            self.refuse()
        self.end()
        return self.symbols

    def attributes(self) -> list[str]:
        """Take attributes, labels and words that do not change a type; return their words."""
        made = []
        while self.next in WITH_PARENTHESES or self.next in IGNORED:
            word = self.take()
            if word in WITH_PARENTHESES:
                while self.next in QUALIFIERS:
                    self.take()
                made += [word, *(self.balanced() if self.next == "(" else self.refuse())]
            elif word == "noexcept":
                condition = self.balanced() if self.next == "(" else ["true"]
                if condition == ["true"] and self.last == "RPAREN":
                    for kind in ("ATTRIBUTE_BEGIN", "ID", "ATTRIBUTE_END"):
                        self.add(kind, word)
        if unread := OTHER_TYPES.intersection(made):
            self.refuse(f"the attribute {unread.pop()}")
        return [text for text in made if text[0] != '"']

    def word(self) -> None:
        """Read a word by its place."""
        text = self.next
        floats = {"float", "double"}
        beside = {self.symbols[-1].value if self.symbols else "", self.tokens[self.index + 1].text}
        is_number = text in NUMBER_WORDS or (text == "complex" and bool(floats & beside))
        if not is_word(text) or (text in STORAGE and self.follows_star()):
            self.refuse()
        if text in STORAGE or text in QUALIFIERS:
            self.add("CONST", SYNONYMS.get(self.take(), text))
        elif text in RESERVED and not is_number:
            self.refuse("a type is missing or unknown")
        elif is_number or not self.has_type:
            self.add("INT", SYNONYMS.get(self.take(), text) if is_number else self.take())
            self.has_type = True
        else:
            self.copy()

    def follows_star(self) -> bool:
        before = (symbol.type for symbol in reversed(self.symbols) if symbol.type != "CONST")
        return next(before, "") == "TIMES"

    def tagged(self) -> None:
        """Read a struct, union or enum up to its body."""
        kind = self.next
        self.copy()
        own = self.attributes()
        if is_word(self.next):
            self.add("TYPEID", self.take())
        self.has_type = True
        if self.next == "{":
            self.copy()
            self.blocks.append(_Block(kind, len(self.symbols), own))
            self.has_type = kind == "enum"

    def end_tagged(self) -> None:
        block = self.blocks[-1]
        if not block.kind or (block.kind != "enum" and block.start != len(self.symbols)):
            self.refuse()
        self.blocks.pop()
        self.copy()
        if own := [*block.own, *self.attributes()]:
            self.add("CONST", OF_STRUCT + " ".join(own))
        self.has_type = True

    def expect_type(self) -> None:
        """Refuse a declarator without a type: pycparser takes it for that of an int."""
        if not self.has_type:
            self.refuse("a type is missing or unknown")

    def declarator(self) -> None:
        """Copy a token of a declarator, of which a type has a limited number."""
        self.expect_type()
        self.nesting += 1
        if self.nesting > _DEEPEST:
            self.refuse("nested too deep")
        self.copy()

    def parenthesis(self) -> None:
        is_nested = self.is_nested()
        self.declarator()
        self.blocks[-1].depth += 1
        self.has_type = is_nested

    def is_nested(self) -> bool:
        """Return True at a parenthesis around a declarator, not around parameters."""
        if self.last in ("ID", "RPAREN", "RBRACKET"):
            return False
        following = self.tokens[self.index + 1].text
        after = self.tokens[self.index + 2].text if following else ""
        if following in WITH_PARENTHESES or following in ("*", "(", "["):
            return True
        return is_word(following) and following not in RESERVED and after in (")", "(", "[")

    def end_parenthesis(self) -> None:
        if self.last not in ("LPAREN", "ELLIPSIS"):
            self.expect_type()
        if not self.blocks[-1].depth:
            self.refuse()
        self.blocks[-1].depth -= 1
        self.copy()
        self.has_type = True

    def extent(self) -> None:
        self.declarator()
        self.index -= 1
        self.add_opaque(self.balanced())
        self.add("RBRACKET", "]")

    def comma(self) -> None:
        self.expect_type()
        self.copy()
        self.has_type = not self.blocks[-1].depth

    def width(self) -> None:
        self.copy()
        self.add_opaque(self.value())

    def initializer(self) -> None:
        self.expect_type()
        if self.blocks[-1].depth:
            self.refuse()
        elif self.blocks[-1].kind == "enum":
            self.width()
        else:
            self.value()

    def body(self) -> None:
        self.expect_type()
        self.balanced()
        self.end()

    def semicolon(self) -> None:
        if self.blocks[-1].depth:
            self.refuse()
        self.take()
        self.end()

    def end(self) -> None:
        """End a declaration, and put its attributes before it."""
        block = self.blocks[-1]
        if block.depth or (len(self.blocks) == 1 and self.next):
            self.refuse()
        if block.start < len(self.symbols):
            self.expect_type()
            self.add("SEMI", ";")
            if block.attributes:
                text = ATTRIBUTES + " ".join(block.attributes)
                self.symbols.insert(block.start, Symbol("CONST", text, 0))
        block.start = len(self.symbols)
        block.attributes.clear()
        self.nesting = 0
        self.has_type = False
