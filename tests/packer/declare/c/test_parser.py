"""The parser of declarations, compared with pycparser: of installed headers, and generated."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from packer.declare.c.parser import parse_declaration
from packer.declare.c.text import chunks_of
from packer.declare.c.types import Array, CType, Function, Named, Pointer

from ....support import needs

needs.module("pycparser", "test")
from pycparser import c_ast, c_generator, c_parser  # noqa: E402

INSTALLED = {"sqlite3": "libsqlite3-dev", "zlib": "zlib1g-dev", "samplerate": "libsamplerate0-dev"}
# Extensions that pycparser does not read.
EXTENSIONS = ("__attribute__(x)=", "__extension__=", "__asm__(x)=", "__inline=", "__restrict=")
EXTENSIONS += ("__builtin_va_list=int", "_Float128=double", "_Float32=float", "_Float64=double")
EXTENSIONS += ("_Float32x=double", "_Float64x=double", "__float128=double")
GENERATOR = c_generator.CGenerator()


def ours(type_: CType) -> Any:
    """A type of packer as tuples; qualifiers in any order."""
    if isinstance(type_, Pointer):
        return ("*", {*type_.quals}, ours(type_.target))
    if isinstance(type_, Array):
        extent = [w for w in type_.extent if w not in ("static", "const", "restrict", "volatile")]
        return ("[]", plain("".join(extent)), ours(type_.item))
    if isinstance(type_, Function):
        parameters = [(p.name, ours(p.type)) for p in type_.parameters]
        return ("()", ours(type_.result), parameters, type_.is_variadic)
    if isinstance(type_, Named):
        return ("name", {*type_.quals}, sorted(type_.words))
    members = type_.members and [(m.name, ours(m.type), m.bits) for m in type_.members]
    constants = [(name, plain("".join(tokens))) for name, tokens in type_.constants]
    return (type_.kind, {*type_.quals}, type_.tag, members or None, constants)


def theirs(node: Any) -> Any:
    """The same of a type of pycparser."""
    if isinstance(node, c_ast.PtrDecl):
        return ("*", {*node.quals}, theirs(node.type))
    if isinstance(node, c_ast.ArrayDecl):
        return ("[]", text_of(node.dim), theirs(node.type))
    if isinstance(node, c_ast.FuncDecl):
        given = node.args.params if node.args else []
        is_variadic = bool(given) and isinstance(given[-1], c_ast.EllipsisParam)
        parameters = [(p.name or "", theirs(p.type)) for p in given[: len(given) - is_variadic]]
        nothing = parameters == [("", ("name", set(), ["void"]))]
        return ("()", theirs(node.type), [] if nothing else parameters, is_variadic)
    quals = {*node.quals} if isinstance(node, c_ast.TypeDecl) else set()
    node = node.type if isinstance(node, c_ast.TypeDecl) else node
    if isinstance(node, c_ast.IdentifierType):
        return ("name", quals, sorted(node.names))
    if isinstance(node, c_ast.Enum):
        values = node.values.enumerators if node.values else []
        return ("enum", quals, node.name or "", None, [(v.name, text_of(v.value)) for v in values])
    members = node.decls and [(d.name or "", theirs(d.type), bool(d.bitsize)) for d in node.decls]
    return (type(node).__name__.lower(), quals, node.name or "", members or None, [])


def text_of(expression: Any) -> str:
    """The text of an expression."""
    return "" if expression is None else plain(GENERATOR.visit(expression))


def plain(text: str) -> str:
    """An expression without spaces and parentheses."""
    return re.sub(r"[ ()]", "", text)


def compare(text: str) -> int:
    """Compare all declarations of a text; return their number."""
    chunks = [chunk.text for chunk in chunks_of(text) if chunk.text]
    found = [declared for chunk in chunks for declared in parse_declaration(chunk)]
    nodes = [getattr(node, "decl", node) for node in c_parser.CParser().parse(text).ext]
    assert len(found) == len(nodes)
    for declared, node in zip(found, nodes, strict=True):
        assert (declared.name, ours(declared.type)) == (node.name or "", theirs(node.type))
        assert declared.storage - {"inline"} == {*node.storage}
    return len(found)


@pytest.mark.parametrize("name", INSTALLED)
def test_installed_headers(name: str) -> None:
    """Every declaration of the header, and of those that it includes."""
    needs.header(f"{name}.h", INSTALLED[name])
    words = [f"-D{macro}" for macro in EXTENSIONS]
    path = str(Path("/usr/include", f"{name}.h"))
    made = subprocess.run(["gcc", "-E", "-x", "c", *words, path], capture_output=True, check=True)
    assert compare(made.stdout.decode()) > 20


BASES = ("int", "char", "unsigned", "long unsigned int long", "double", "void", "own", "size_t")
BASES += ("struct s", "union u", "enum e", "_Bool", "signed char", "double long", "int short")
BODIES = (
    "struct {{ {} }}",
    "struct s {{ {} int b : 3; }}",
    "union u {{ {} struct {{ int x; }}; }}",
    "enum e {{ A, B = 2, C = B + 1 }}",
    "enum {{ D }}",
)
QUALIFIERS = ("", "const", "volatile", "const volatile")
EXTENTS = ("", "3", "n", "2 * n", "static 4", "sizeof(int)")


@st.composite
def specifiers(draw: st.DrawFn, depth: int) -> str:
    """The words before the declarators; the qualifier is before or after the type."""
    base = draw(st.sampled_from(BASES))
    if depth and draw(st.integers(0, 3)) == 0:
        members = draw(st.lists(declarations(depth - 1, "m"), min_size=1, max_size=2))
        base = draw(st.sampled_from(BODIES)).format(" ".join(members))
    words = [base, draw(st.sampled_from(QUALIFIERS))]
    return " ".join(draw(st.permutations(words)))


@st.composite
def declarators(draw: st.DrawFn, name: str, depth: int) -> str:
    """A name inside pointers, arrays, functions and parentheses."""
    text = name
    for _ in range(draw(st.integers(0, 4 if depth else 1))):
        kind = draw(st.sampled_from("**[()"))
        if kind == "*":
            text = f"*{draw(st.sampled_from(('', 'const ', 'restrict ')))}{text}"
        elif kind == "(":
            given = draw(st.lists(parameters(depth - 1), max_size=3)) if depth else []
            given += draw(st.sampled_from(([], ["..."]))) if given else []
            text = f"({text})({', '.join(given) or draw(st.sampled_from(('', 'void')))})"
        elif text:
            text = f"({text})[{draw(st.sampled_from(EXTENTS))}]"
    return f"({text})" if text and draw(st.integers(0, 5)) == 0 else text


@st.composite
def parameters(draw: st.DrawFn, depth: int) -> str:
    """One parameter, with or without a name."""
    name = draw(st.sampled_from(("", "a", "b")))
    return f"{draw(specifiers(0))} {draw(declarators(name, max(depth, 0)))}"


@st.composite
def declarations(draw: st.DrawFn, depth: int, name: str = "f") -> str:
    """One declaration of one or two names."""
    made = [draw(declarators(name + str(i), depth)) for i in range(draw(st.integers(1, 2)))]
    return f"{draw(specifiers(depth))} {', '.join(made)};"


@given(st.sampled_from(("", "extern ", "static ", "typedef ")), declarations(2))
@settings(
    max_examples=int(os.environ.get("EXAMPLES", "200")),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_generated_declarations(storage: str, declaration: str) -> None:
    """Names inside any pointers, arrays, functions, structs and parentheses."""
    known = "typedef int own; typedef unsigned long size_t; "
    compare(known + storage + declaration)
