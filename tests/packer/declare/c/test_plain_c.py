"""The tokens that pycparser gets: extensions of GNU C, names of types, and mistakes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings

from packer.declare.c.parser import CSyntaxError, parse_declaration, parse_function_type
from packer.declare.c.types import Function, Pointer, Tagged

from .test_parser import declarations


@pytest.mark.parametrize(
    ("text", "name", "packed"),
    [
        ("typedef struct __attribute__((packed)) { char c; int n; } t;", "t", True),
        ("typedef struct { char c; int n; } __attribute__((packed)) t;", "t", True),
        (
            "typedef struct __attribute__((may_alias)) { char c; } __attribute__((packed)) t;",
            "t",
            1,
        ),
        ("typedef struct { char c; int n; } *t __attribute__((aligned(8)));", "t", False),
    ],
)
def test_a_struct_has_the_attributes_that_gnu_c_gives_it(
    text: str, name: str, packed: bool
) -> None:
    """Before its tag and after its body; attributes of the declared name are the declaration's."""
    (declared,) = parse_declaration(text)
    type_ = declared.type.target if isinstance(declared.type, Pointer) else declared.type
    assert isinstance(type_, Tagged) and declared.name == name
    assert ("packed" in type_.attributes, "aligned" in declared.attributes) == (packed, not packed)


def test_attributes_belong_to_the_field_beside_them() -> None:
    """An inner struct keeps its own, and a field does not pass its attributes on."""
    (declared,) = parse_declaration(
        "struct s { int a; __attribute__((aligned(8))) int b; int c __attribute__((packed));"
        " struct { int x; } __attribute__((packed)) d; _Alignas(16) int e; } __attribute__((x));"
    )
    assert isinstance(declared.type, Tagged) and declared.type.members
    texts = {member.name: member.attributes for member in declared.type.members}
    assert [name for name, text in texts.items() if text] == ["b", "c", "e"]
    inner = declared.type.members[3].type
    assert isinstance(inner, Tagged) and "packed" in inner.attributes
    assert declared.type.attributes == "__attribute__ ( x )"


@pytest.mark.parametrize(
    "text",
    [
        "__extension__ typedef long long t;",
        'int f(int) __asm__("g") __attribute__((pure, visibility("default")));',
        "__attribute__((noreturn)) void f(void);",
        "extern __inline __attribute__((always_inline)) int f(int a) { return a; }",
        "static __inline__ int *__restrict f(_Float16 a, __int128 b, foo c, const bar *d);",
        "int f(int a), g = 3, h[2] = {1, 2};",
        "void f(int n, double a[n][2 * n], double b[static 4], double c[*]);",
        "int f(void) noexcept;",
    ],
)
def test_extensions_are_read(text: str) -> None:
    """GNU C and C++ beside what pycparser knows."""
    assert parse_declaration(text)


@pytest.mark.parametrize(
    "text",
    [
        "int f(int (int;",
        "const f;",
        "static (int);",
        "int * static f(int);",
        "std::string f(int);",
        "int &f(int);",
        "typedef int v __attribute__((vector_size(16)));",
        "int f(const);",
        "int f(int,);",
        "struct s { int a; } } f;",
        "int f(int) ) ;",
        "struct { int a;",
        "enum { A = 1, B =",
        "int f(int); int g(int);",
        f"int {'(' * 10_000}f{')' * 10_000};",
        f"int f{'[1]' * 10_000};",
        f"{'struct { ' * 1000} int a; {'};' * 1000}",
    ],
)
def test_other_text_is_a_syntax_error(text: str) -> None:
    """So that a function is listed with a reason; nothing else is raised."""
    with pytest.raises(CSyntaxError):
        parse_declaration(text)


def test_a_function_without_function_pointers_needs_no_pycparser() -> None:
    """Its import takes a fifth of a small export."""
    code = (
        "import sys; from packer.declare.c_type import parse_functions as read;"
        "read({'g': 'long(const double *restrict x, own *y, long n, char a[n][3])'}, module='c');"
        "print('pycparser' in sys.modules); read({'g': 'int(int (*call)(int))'}, module='c');"
        "print('pycparser' in sys.modules)"
    )
    made = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert made.split() == ["False", "True"]


@given(declarations(1))
@settings(max_examples=200, derandomize=True, deadline=None, database=None)
def test_both_ways_of_reading_agree(declaration: str) -> None:
    """A field of a struct is read by pycparser, however simple it is."""
    (struct,) = parse_declaration(f"struct all {{ {declaration} }};")
    assert isinstance(struct.type, Tagged)
    assert struct.type.members == tuple(parse_declaration(declaration))


@pytest.mark.parametrize(
    ("words", "promises"),
    [("noexcept", True), ("noexcept(true)", True), ("noexcept(false)", False), ("", False)],
)
def test_a_function_of_cpp_may_promise_to_throw_nothing(words: str, promises: bool) -> None:
    """The wrapper's redeclaration has to make the same promise."""
    (declared,) = parse_declaration(f"int f(int (*g)(int)) {words};")
    (simple,) = parse_declaration(f"int f(int g) {words};")
    assert isinstance(declared.type, Function) and isinstance(simple.type, Function)
    assert declared.type.is_noexcept is simple.type.is_noexcept is promises


def test_the_place_of_a_mistake_is_that_in_the_text() -> None:
    """Columns count from the text that the user wrote."""
    with pytest.raises(CSyntaxError) as caught:
        parse_function_type("void(int a, double b b)")
    assert caught.value.position == len("void(int a, double b ")
