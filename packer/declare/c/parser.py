"""Declarations of C as types, one declaration at a time.

pycparser reads them. It is not imported for enums, nor for words, tags, stars, extents and one list
of parameters: the import takes a fifth of a small export.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from .plain_c import ATTRIBUTES, OF_STRUCT, PlainC, Symbol
from .token_reader import CSyntaxError as CSyntaxError
from .tokens import QUALIFIERS, RESERVED, STORAGE, is_word, tokens_of
from .types import Array, CType, Declared, Function, Named, Pointer, Tagged

_ENUM = re.compile(
    r"(?P<storage>typedef)?\s*enum\s*(?P<tag>\w*)\s*\{(?P<body>[^{}]*)\}\s*(?P<name>\w*)\s*",
    re.ASCII,
)
_LETTERS = {"INT": "i", "CONST": "c", "TIMES": "*", "ID": "n", "LBRACKET": "[", "RBRACKET": "]"}
_LETTERS |= {"LPAREN": "(", "COMMA": ",", "RPAREN": ")", "SEMI": ";"}
_LETTERS |= {"STRUCT": "s", "UNION": "s", "ENUM": "s", "TYPEID": "t"}
_WORDS = r"(?:[ic]+|c*stc*)"  # of a type: struct point, const
_ONE = rf"{_WORDS}(\*[*c]*)?n?(\[n?\])*"  # words, stars, a name, extents
_SIMPLE = re.compile(rf"{_WORDS}(\*[*c]*)?n((\[n?\])*|\(({_ONE}(,{_ONE})*)?\));")


def parse_declaration(text: str, attributes: str = "") -> list[Declared]:
    """Parse one declaration, or the head of a function's definition.

    `attributes` are added to the attributes of every struct in it.
    """
    enum = _plain_enum(text, attributes) if "enum" in text else None
    return [enum] if enum else _parsed(PlainC(text).read(), text, attributes)


def parse_function_type(text: str) -> Function:
    """Parse a function type without a name: ``int(int a)``."""
    head, parenthesis, rest = text.partition("(")
    if {*head.split()} <= QUALIFIERS | STORAGE:
        raise CSyntaxError("a type is missing or unknown", len(head))
    try:
        (declared,) = parse_declaration(f"{head} f{parenthesis}{rest}")
    except CSyntaxError as error:
        place = error.position
        raise CSyntaxError(str(error), place - 2 if place > len(head) else place) from None
    function = declared.type
    if declared.storage:
        raise CSyntaxError("a storage class, expected a type", 0)
    is_whole = not declared.attributes and text[-1] == ")"
    if not isinstance(function, Function) or not is_whole or isinstance(function.result, Function):
        raise CSyntaxError("", len(text))
    return function


def _parsed(symbols: Sequence[Symbol], text: str, attributes: str = "") -> list[Declared]:
    if _SIMPLE.fullmatch("".join(_LETTERS.get(symbol.type, "?") for symbol in symbols)):
        return [_simple(symbols)]
    from pycparser.c_parser import CParser, ParseError

    stream = iter(symbols)
    lexer = SimpleNamespace(filename="", input=lambda *_: None, token=lambda: next(stream, None))
    try:
        tree = CParser(lexer=lambda **_: lexer, dialect="c23").parse("")
        return [_declared(node, attributes) for node in tree.ext]
    except ParseError as error:
        found = re.match(r":1:(\d+): ", str(error))
        raise CSyntaxError("", int(found[1]) if found else len(text)) from None
    except RecursionError:
        raise CSyntaxError("nested too deep", len(text)) from None


def _plain_enum(text: str, attributes: str) -> Declared | None:
    """Read an enum with nothing else in its declaration than a name."""
    match = _ENUM.fullmatch(text)
    if match is None or match["name"] in RESERVED:
        return None
    made: list[tuple[str, tuple[str, ...]]] = []
    entry, depth = list[str](), 0
    for word in [*(token.text for token in tokens_of(match["body"])), ","]:
        depth += (word == "(") - (word == ")")
        if word != "," or depth:
            entry.append(word)
            continue
        if entry and (not is_word(entry[0]) or entry[1:2] not in ([], ["="])):
            return None
        made += [(entry[0], tuple(entry[2:]))] if entry else []
        entry = []
    type_ = Tagged("enum", match["tag"], constants=tuple(made), attributes=attributes.strip())
    return Declared(match["name"], type_, frozenset(filter(None, [match["storage"]])))


def _simple(symbols: Sequence[Symbol]) -> Declared:
    """Read a name or a function whose types are words, stars and extents."""
    parts: list[list[Symbol]] = [[]]
    for symbol in symbols:
        if _LETTERS[symbol.type] in "(,);":
            parts.append([])
        else:
            parts[-1].append(symbol)
    head, *parameters = [_one(part) for part in parts if part]
    is_function = symbols[-2].type == "RPAREN"
    return head._replace(type=_function(head.type, parameters)) if is_function else head


def _one(symbols: Sequence[Symbol]) -> Declared:
    """Read words, stars, a name and extents."""
    name = kind = tag = ""
    words: list[str] = []
    quals: list[list[str]] = [[]]  # of the type and of each pointer
    extents: list[tuple[str, ...]] = []
    for symbol in symbols:
        if symbol.type == "TIMES":
            quals.append([])
        elif symbol.type == "LBRACKET":
            extents.append(())
        elif symbol.type == "ID" and extents:
            extents[-1] = tuple(symbol.value.split("\0"))
        elif symbol.type == "ID":
            name = symbol.value
        elif symbol.type == "TYPEID":
            tag = symbol.value
        elif _LETTERS[symbol.type] == "s":
            kind = symbol.value
        elif symbol.type != "RBRACKET":
            (words if symbol.type == "INT" else quals[-1]).append(symbol.value)
    kept = _kept(quals[0])
    type_: CType = Tagged(kind, tag, kept) if kind else Named(tuple(words), kept)
    for given in quals[1:]:
        type_ = Pointer(type_, _kept(given))
    for extent in reversed(extents):
        type_ = Array(type_, extent)
    return _named(name, type_, quals[0])


def _kept(quals: Sequence[str]) -> tuple[str, ...]:
    return tuple(qualifier for qualifier in quals if qualifier in QUALIFIERS)


def _named(name: str, type_: CType, quals: Sequence[str], bits: tuple[str, ...] = ()) -> Declared:
    """Make a declaration of the storage classes and attributes among qualifiers."""
    storage = frozenset(q for q in quals if q[0] != ATTRIBUTES and q not in QUALIFIERS)
    given = (q[1:] for q in quals if q[0] == ATTRIBUTES and not q.startswith(OF_STRUCT))
    return Declared(name, type_, storage, bits, next(given, ""))


def _function(result: CType, parameters: Sequence[Declared], **more: bool) -> Function:
    nothing = len(parameters) == 1 and parameters[0] == Declared("", Named(("void",)))
    return Function(result, () if nothing else tuple(parameters), **more)


def _declared(node: Any, attributes: str) -> Declared:
    """Convert a declaration of pycparser."""
    bits = _tokens(getattr(node, "bitsize", None))
    return _named(node.name or "", _type(node.type, attributes, node.quals), node.quals, bits)


def _type(node: Any, attributes: str, quals: Sequence[str] = ()) -> CType:
    kind = type(node).__name__
    if kind == "TypeDecl":
        return _type(node.type, attributes, node.quals)
    if kind == "PtrDecl":
        return Pointer(_type(node.type, attributes), _kept(node.quals))
    if kind == "ArrayDecl":
        return Array(_type(node.type, attributes), _tokens(node.dim))
    if kind == "IdentifierType":
        return Named(tuple(node.names), _kept(quals))
    if kind != "FuncDecl":
        return _tagged(node, kind.lower(), attributes, quals)
    given = node.args.params if node.args else []
    is_variadic = bool(given) and type(given[-1]).__name__ == "EllipsisParam"
    parameters = [_declared(p, attributes) for p in given[: len(given) - is_variadic]]
    result = _type(node.type, attributes)
    is_noexcept = bool(node.attributes)
    return _function(result, parameters, is_variadic=is_variadic, is_noexcept=is_noexcept)


def _tagged(node: Any, kind: str, attributes: str, quals: Sequence[str]) -> Tagged:
    own = " ".join([attributes, *(q[2:] for q in quals if q.startswith(OF_STRUCT))]).strip()
    made = Tagged(kind, node.name or "", _kept(quals), attributes=own)
    if kind == "enum" and node.values:
        constants = ((c.name, _tokens(c.value)) for c in node.values.enumerators)
        return made._replace(constants=tuple(constants))
    if kind == "enum" or node.decls is None:
        return made._replace(attributes="")
    return made._replace(members=tuple(_declared(member, attributes) for member in node.decls))


def _tokens(name: Any) -> tuple[str, ...]:
    """Return the tokens of an extent or a value."""
    return tuple(name.name.split("\0")) if name else ()
