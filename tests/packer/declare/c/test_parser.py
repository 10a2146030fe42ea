"""The parser of declarations: the compiler confirms what it reads."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from packer.declare.c.parser import parse_declaration
from packer.declare.c.scope import enum_values
from packer.declare.c.text import chunks_of
from packer.declare.c.types import Array, CType, Declared, Function, Named, Pointer, Tagged, render

from ....support import needs

INSTALLED = {"sqlite3": "libsqlite3-dev", "zlib": "zlib1g-dev", "samplerate": "libsamplerate0-dev"}


def read(text: str) -> list[Declared]:
    """All declarations of a text, but those whose type an attribute replaces by another."""
    texts = [chunk.text for chunk in chunks_of(text) if chunk.text and "__mode__" not in chunk.text]
    return [declared for text in texts for declared in parse_declaration(text)]


def is_named(type_: CType) -> bool:
    """True if the type can be written: no struct in it lacks a name."""
    if isinstance(type_, Function):
        return all(map(is_named, (type_.result, *(p.type for p in type_.parameters))))
    if isinstance(type_, (Array, Pointer)):
        return is_named(type_.item if isinstance(type_, Array) else type_.target)
    return isinstance(type_, Named) or bool(type_.tag)


def assertions(subject: str, type_: CType) -> Iterator[str]:
    """C text that compiles only if an expression has the type, and its fields theirs."""
    if is_named(type_):
        same = f"__builtin_types_compatible_p(__typeof__({subject}), {render(type_)})"
        yield f'_Static_assert({same}, "{subject}");'
    while isinstance(type_, Array):
        subject, type_ = f"({subject})[0]", type_.item
    if not isinstance(type_, Tagged):
        return
    for member in type_.members or ():
        if not member.bits:
            yield from assertions(f"({subject}).{member.name}".rstrip("."), member.type)
    for name, value in enum_values(type_).items():
        yield f'_Static_assert({name} == {value}, "{name}");'


def confirmations(declared: Declared) -> Iterator[str]:
    """C text that the compiler accepts only if it reads the declaration in the same way."""
    if declared.name:
        is_type = "typedef" in declared.storage
        subject = f"*({declared.name} *)0" if is_type else declared.name
        yield from assertions(subject, declared.type)
    elif isinstance(declared.type, Tagged) and declared.type.tag:
        yield from assertions(f"*({declared.type.spelling} *)0", declared.type)


def compiles(text: str, *options: str) -> str:
    """The compiler's errors."""
    words = ["gcc", "-fsyntax-only", "-w", *options, "-x", "c", "-"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("name", INSTALLED)
def test_installed_headers(name: str, tmp_path: Path) -> None:
    """Every declaration of the header, and of headers that it includes; no function is left out."""
    needs.header(f"{name}.h", INSTALLED[name])
    words = ["gcc", "-E", "-x", "c", f"/usr/include/{name}.h"]
    text = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    found = read(text)
    lines = [line for declared in found for line in confirmations(declared)]
    known = tmp_path / "functions"
    assert compiles("\n".join([text, *lines]), "-aux-info", str(known)) == ""
    functions = {d.name for d in found if isinstance(d.type, Function)} - {""}
    assert functions >= {*re.findall(r"^/\*.*?\*/ [^;]*?\b(\w+) \((?!\*)", known.read_text(), re.M)}
    assert len(functions) >= 20


BASES = ("int", "char", "unsigned", "long unsigned int long", "double", "own", "size_t")
BASES += ("struct s", "union u", "enum e", "_Bool", "signed char", "double long", "int short")
BODIES = (
    "struct {{ {} }}",
    "struct t {{ {} int b : 3; }}",
    "union v {{ {} struct {{ int x; }}; }}",
    "enum g {{ A, B = 2, C = B + 1 }}",
    "enum {{ D = 1 ? 7 : 8 }}",
)
KNOWN = """
typedef int own; typedef unsigned long size_t; enum { n = 5 }; enum e { Z };
struct s { int y; }; union u { int z; };
"""
QUALIFIERS = ("", "const", "volatile", "const volatile")
EXTENTS = ("3", "n", "2 * n", "sizeof(int)")
FOLLOWING = {"": "*[(", "*": "*[(", "[": "*[", "(": "*"}  # by what a declarator may go on


@st.composite
def specifiers(draw: st.DrawFn, depth: int) -> str:
    """The words before the declarators; the qualifier is before or after the type."""
    base = draw(st.sampled_from(BASES))
    if depth and draw(st.integers(0, 3)) == 0:
        members = [draw(declarations(0, f"m{i}_")) for i in range(draw(st.integers(1, 2)))]
        base = draw(st.sampled_from(BODIES)).format(" ".join(members))
    words = [base, draw(st.sampled_from(QUALIFIERS))]
    return " ".join(draw(st.permutations(words)))


@st.composite
def declarators(draw: st.DrawFn, name: str, depth: int) -> str:
    """A name inside pointers, arrays, functions and parentheses."""
    text, kind = name, ""
    for _ in range(draw(st.integers(0, 4 if depth else 1))):
        kind = draw(st.sampled_from(FOLLOWING[kind] if depth else "*["))
        if kind == "*":
            text = f"*{draw(st.sampled_from(('', 'const ', 'volatile ')))}{text}"
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


def test_generated_declarations() -> None:
    """Names inside any pointers, arrays, functions, structs and parentheses."""
    valid = []

    @given(st.sampled_from(("", "extern ", "static ", "typedef ")), declarations(2))
    @settings(
        max_examples=int(os.environ.get("EXAMPLES", "200")),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    def check(storage: str, declaration: str) -> None:
        text = KNOWN + storage + declaration
        lines = [
            line for declared in read(storage + declaration) for line in confirmations(declared)
        ]
        errors = compiles("\n".join([text, *lines]))
        valid.append(not errors or not compiles(text))
        assert not errors or not valid[-1], f"{text}\n{lines}\n{errors}"

    check()
    assert sum(valid) > len(valid) / 2
