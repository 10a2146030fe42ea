"""``typeof`` of expressions: the compiler confirms the type that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from packer.modules.c_source import CSourceModule

from ...read_source import compile_errors

UNIT = """
typedef unsigned char byte;
enum color { RED = -1 };
struct inner { float f[4]; };
struct outer { short s; struct inner in; union { int whole; double real; }; byte *data; };
extern struct outer o;
extern double table[2][3];
long apply(int n);
"""
# The expression, and the code of a parameter of its type.
TYPES = {
    "o.s": "i16",
    "o.s + 1": "i32",
    "o.in.f[2]": "f32",
    "o.real * 2": "f64",
    "&o.whole": "*i32",
    "o.data": "*u8",
    "*o.data": "u8",
    "((struct outer *)0)->s": "i16",
    "table[0][0]": "f64",
    "table[1]": "*f64[3]",
    "apply(3)": "i64",
    "apply": "fn",
    "(byte)-1": "u8",
    "sizeof(int) * 2": "u64",
    "sizeof o.s": "u64",
    "1 ? 2.0f : 3": "f32",
    "'a' + 0u": "u32",
    "o.s == 1 && RED": "i32",
    "1ull << 3": "u64",
    "byte *": "*u8",
    "!o.real": "i32",
}


@pytest.mark.parametrize("text", TYPES)
def test_the_type_of_an_expression_is_the_compilers(text: str, tmp_path: Path) -> None:
    """The declaration compiles, with a condition that compares the types."""
    module = CSourceModule(f"{UNIT}int f(typeof({text}) x) {{ return !x; }}", functions="auto")
    assert module.functions[0].parameters[0].code == TYPES[text], module.left_out
    assert compile_errors(module, tmp_path, "-w") == ""


@pytest.mark.parametrize("text", ["({ 1; })", "nothing", "o.nothing", "_Generic(1, int: 2)", "o("])
def test_another_expression_is_refused_by_its_text(text: str) -> None:
    """The function is left out, and no other one."""
    code = f"{UNIT}int f(typeof({text}) x) {{ return !x; }}\nint g(int n) {{ return n; }}"
    module = CSourceModule(code, functions="auto")
    assert [d.name for d in module.functions] == ["g"]
    assert "f" in module.left_out
