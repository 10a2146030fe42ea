"""The syntax of C declarations: text to types, one declaration at a time.

Only declarations are read; bodies and initialisers are skipped by their braces. A name where a
type is expected is the name of a type, so that no list of typedefs is needed. Extensions of GNU
that do not change a type are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

_TOKEN = re.compile(
    r"""(?P<skip>\s+|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|[uUL]?'(?:[^'\\\n]|\\.)*')
    |[A-Za-z_$][\w$]*
    |\.?[0-9](?:[eEpP][+-]|[\w.])*
    |\.\.\.|<<|>>|::|[<>=!]=|&&|\|\||.
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.ASCII,
)
_WORD = re.compile(r"[A-Za-z_$]")
_STORAGE = {"typedef", "extern", "static", "auto", "register", "_Thread_local", "__thread"}
_QUALIFIERS = {
    **{word: word for word in ("const", "volatile", "restrict", "_Atomic")},
    "__const": "const",
    "__volatile__": "volatile",
    "__volatile": "volatile",
    "__restrict": "restrict",
    "__restrict__": "restrict",
}
_INLINE = {"inline", "__inline", "__inline__"}
_IGNORED = {"__extension__", "_Noreturn", "noexcept", "constexpr", "_Nonnull", "_Nullable"}
_WITH_PARENTHESES = {
    *("__attribute__", "__attribute", "__asm__", "__asm", "asm", "__declspec"),
    *("_Alignas", "alignas"),
}
_TAGGED = ("struct", "union", "enum")
_SYNONYMS = {"__signed__": "signed", "__signed": "signed", "__complex__": "_Complex"}
_NUMBER_WORDS = {
    *("void", "char", "short", "int", "long", "float", "double", "signed", "unsigned"),
    *("bool", "_Bool", "_Complex", "_Float16", "__bf16", "__int128", "_Float128", "__float128"),
    *("_Float32", "_Float64", "_Float32x", "_Float64x", *_SYNONYMS),
}
RESERVED = {
    *_NUMBER_WORDS, *_STORAGE, *_QUALIFIERS, *_INLINE, *_IGNORED, *_WITH_PARENTHESES, *_TAGGED,
    *("typeof", "__typeof__", "sizeof", "return", "if", "else", "for", "while", "do", "switch"),
}  # fmt: skip
_DEEPEST = 60


class CSyntaxError(Exception):
    """Text that is no declaration; `position` is the offset of the token where this is found."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.position = position


class Token(NamedTuple):
    """One token and its offset in the text."""

    text: str
    position: int


class Named(NamedTuple):
    """A type by its words: ``unsigned long``, or the name of a typedef."""

    words: tuple[str, ...]
    quals: tuple[str, ...] = ()


class Tagged(NamedTuple):
    """A struct, union or enum.

    Attributes
    ----------
    members : tuple of Declared, or None
        The fields of a struct or union; None without a body.
    constants : tuple of (str, tuple of str)
        The names of an enum, each with the tokens of its value.
    attributes : str
        The text of its attributes.
    alias : str
        The typedef by which a type without a tag is known.
    """

    kind: str
    tag: str
    quals: tuple[str, ...] = ()
    members: tuple[Declared, ...] | None = None
    constants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    attributes: str = ""
    alias: str = ""

    @property
    def name(self) -> str:
        """The tag, or the typedef's name."""
        return self.tag or self.alias

    @property
    def spelling(self) -> str:
        """The type in C."""
        return f"{self.kind} {self.tag}" if self.tag else self.alias


class Pointer(NamedTuple):
    """A pointer."""

    target: CType
    quals: tuple[str, ...] = ()


class Array(NamedTuple):
    """An array; the extent as tokens, of which there may be none."""

    item: CType
    extent: tuple[str, ...] = ()


class Function(NamedTuple):
    """A function type."""

    result: CType
    parameters: tuple[Declared, ...]
    is_variadic: bool = False


CType = Named | Tagged | Pointer | Array | Function


class Declared(NamedTuple):
    """One declared name.

    Attributes
    ----------
    storage : frozenset of str
        ``static``, ``typedef``, ``inline`` and others.
    bits : bool
        True for a bit-field.
    position : int
        The offset of the declaration.
    """

    name: str
    type: CType
    storage: frozenset[str] = frozenset()
    bits: bool = False
    position: int = 0


def tokens_of(text: str) -> list[Token]:
    """Split C text into tokens, without comments and preprocessor lines."""
    return [
        Token(match.group(), match.start())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skip"
    ]


def is_word(text: str) -> bool:
    """Return True if a token is a name or a keyword."""
    return bool(_WORD.match(text))


def parse_declaration(text: str) -> list[Declared]:
    """Parse one declaration, or the head of a function's definition."""
    parser = _Parser(text)
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


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.tokens.append(Token("", len(text)))
        self.index = 0
        self.depth = 0

    @property
    def next(self) -> str:
        return self.tokens[self.index].text

    def refuse(self, what: str = "") -> NoReturn:
        raise CSyntaxError(what, self.tokens[self.index].position)

    def take(self) -> str:
        self.index += 1
        return self.tokens[self.index - 1].text

    def accept(self, text: str) -> bool:
        found = self.next == text
        self.index += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.refuse(f"expected {text}")

    def end(self) -> None:
        if self.next:
            self.refuse()

    def balanced(self, opening: str, closing: str) -> tuple[str, ...]:
        """Take tokens in brackets, and return those inside."""
        self.expect(opening)
        start, depth = self.index, 1
        while depth:
            token = self.take()
            if not token:
                self.index -= 1
                self.refuse()
            depth += (token == opening) - (token == closing)
        return tuple(token.text for token in self.tokens[start : self.index - 1])

    def extensions(self) -> str:
        """Skip attributes, labels and words that do not change a type; return their text."""
        texts: list[str] = []
        while True:
            if self.next in _WITH_PARENTHESES:
                self.take()
                while self.next in _QUALIFIERS:
                    self.take()
                texts += self.balanced("(", ")")
            elif self.next in _IGNORED:
                self.take()
                if self.next == "(" and self.tokens[self.index - 1].text == "noexcept":
                    self.balanced("(", ")")
            else:
                return " ".join(texts)

    def declaration(self) -> list[Declared]:
        position = self.tokens[self.index].position
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
            made.append(Declared(name, type_, storage, bits, position))
            if not self.accept(","):
                break
        if self.next == "{":
            self.balanced("{", "}")
        elif self.next:
            self.expect(";")
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
            if word in _STORAGE or word in _INLINE:
                storage.add("inline" if word in _INLINE else word)
            elif word in _QUALIFIERS:
                quals.append(_QUALIFIERS[word])
            elif word in _TAGGED and not words and not tagged:
                tagged = self.tagged()
                continue
            elif (word in _NUMBER_WORDS or self.is_complex(words)) and not tagged:
                words.append("_Complex" if word == "complex" else _SYNONYMS.get(word, word))
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
        attributes = self.extensions()
        tag = self.take() if is_word(self.next) else ""
        if self.next != "{":
            if not tag:
                self.refuse(f"expected the name of a {kind}")
            return Tagged(kind, tag)
        members: list[Declared] | None = None
        constants: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if kind == "enum":
            constants = _constants(self.balanced("{", "}"))
        else:
            self.take()
            self.deeper()
            members = []
            while not self.accept("}"):
                if not self.accept(";"):
                    members += self.declaration()
            self.depth -= 1
        attributes = f"{attributes} {self.extensions()}".strip()
        body = None if members is None else tuple(members)
        return Tagged(kind, tag, (), body, constants, attributes)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse("nested too deep")

    def pointers(self, base: CType) -> CType:
        while self.accept("*"):
            base = Pointer(base, self.qualifiers())
        return base

    def qualifiers(self) -> tuple[str, ...]:
        quals = []
        while self.extensions() or self.next in _QUALIFIERS:
            if self.next in _QUALIFIERS:
                quals.append(_QUALIFIERS[self.take()])
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
        if following in _WITH_PARENTHESES or following in ("*", "(", "["):
            return True
        return is_word(following) and following not in RESERVED and after in (")", "(", "[")

    def suffixes(self, base: CType) -> CType:
        if self.next == "[":
            extent = self.balanced("[", "]")
            return Array(self.suffixes(base), extent)
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
        return Function(result, () if nothing else tuple(made), is_variadic)


def _constants(tokens: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
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


def render(type_: CType, name: str = "", names: bool = True) -> str:
    """Write a type as C text, around a name; parameters with their names."""
    if isinstance(type_, Pointer):
        inner = " ".join(["*", *type_.quals]).replace("* ", "*", 1) + (
            f" {name}" if type_.quals and name else name
        )
        inside = isinstance(type_.target, (Array, Function))
        return render(type_.target, f"({inner})" if inside else inner, names)
    if isinstance(type_, Array):
        return render(type_.item, f"{name}[{' '.join(type_.extent)}]", names)
    if isinstance(type_, Function):
        return render(type_.result, f"{name}({parameters_text(type_, names)})", names)
    text = " ".join(type_.words) if isinstance(type_, Named) else type_.spelling
    return f"{' '.join([*type_.quals, text])} {name}".rstrip()


def parameters_text(function: Function, names: bool = True) -> str:
    """Write the parameters of a function type."""
    texts = [render(p.type, p.name if names else "", names) for p in function.parameters]
    return ", ".join([*texts, *(["..."] if function.is_variadic else [])])
