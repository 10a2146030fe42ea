"""Refusals: each shows a declaration that works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from packer.modules.c_source import CSourceModule
from runtime.error import ExportError

from ..read_source import compile_errors

# The code, the function, and a declaration of it that is refused.
REFUSED: list[tuple[str, str, Any]] = [
    ("__int128 wide(int n) { return n; }", "wide", "__int128(int n)"),
    ("void fill(int n, float *x) { (void)x, (void)n; }", "fill", "void(int n, float x[2 * n])"),
    ("void fill(int n, float *x) { (void)x, (void)n; }", "fill", "void(int n, float x[k])"),
    ("#include <stdio.h>", "printf", "int(const char *format, ...)"),
    ("int one(int a) { return a; }", "one", "int one(int a)"),
    ("int one(int a) { return a; }", "one", "int(static int a)"),
    ("int one(int a) { return a; }", "one", "int(foo_t a)"),
    ("int one(int a) { return a; }", "one", "foo_t(int a)"),
    ("int one(int a) { return a; }", "one", "const (int a)"),
    ("int one(int a) { return a; }", "one", "int(int a"),
    ("int one(int a) { return a; }", "one", "int"),
    ("int see(const union u *p) { return !p; }", "see", "int(union u p)"),
    ("int see(const struct s *p) { return !p; }", "see", "int(struct s p)"),
    ("int any(void *p) { return !p; }", "any", "int(void p)"),
    ("typedef struct foo foo; int see(struct foo *p) { return !p; }", "see", "int(bar *p)"),
    ('#include "dso_packer.h"\nint see(DLTensor *t) { return !t; }', "see", "int(DLTensor t)"),
    ("int see(int n) { return n; }", "see", "int(dso_status n)"),
    ("int see(int *p) { return !p; }", "see", "int(dso_status *p)"),
    ("int see(void *p) { return !p; }", "see", "int(va_list p)"),
    ("int see(const void *p) { return !p; }", "see", "int(const __int128 *p)"),
    (
        "\n#pragma pack(2)\nstruct b { char c; int a; };\n"
        "int see(const struct b *p) { return !p; }",
        "see",
        "int(struct b p)",
    ),
    ("int call(void *f) { return !f; }", "call", "int(int (*f)(const char *text, ...))"),
    ("int call(void (*f)(__int128)) { return !f; }", "call", "int(void (*f)(__int128))"),
    ("int say(const char *s, int n) { return s && n; }", "say", {"out": ["n"]}),
]


def advice_of(message: str) -> Any:
    """The declaration that a message shows."""
    if found := re.search(r"\{ .* \}$", message):
        return tomllib.loads(f"x = {found[0]}")["x"]
    found = re.search(r"(?:declare|works:|compare) '([^']*)'$", message)
    assert found, message
    return found[1]


@pytest.mark.parametrize(("code", "name", "declaration"), REFUSED)
def test_the_advice_of_a_refusal_compiles(
    tmp_path: Path, code: str, name: str, declaration: Any
) -> None:
    """The declaration that the message shows is accepted, and is right for the function."""
    source = f"union u;\nstruct s;\n{code}\n"
    with pytest.raises(ExportError, match=f"function {name!r}: ") as caught:
        CSourceModule(source, functions={name: declaration})
    if declaration == {"out": ["n"]}:  # a pointer needs other code
        assert caught.match("such as 'double \\*n'")
        return
    if "bar" in str(declaration):  # the incomplete struct is another one
        assert caught.match("expected 'struct bar \\*p'; export a function of supported types that")
        return
    advice = advice_of(caught.value.message)
    module = CSourceModule(source, functions={name: advice})
    assert compile_errors(module, tmp_path) == ""


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"out": ["z"]}, r"out 'z': no such parameter; .*'x'"),
        ({"out": "x"}, r"out, expected a list of names of parameters: \['x'\], found 'x'"),
        ({"out": ["x", "x"]}, "out 'x': listed twice"),
        ({"out": ["n"]}, r"out 'n': int, expected a pointer to one number"),
        ({"errno": 1}, "errno, expected true or false, found 1"),
        ({"free": "1f"}, "free, expected the name of a function, found '1f'"),
        ({"free": "g"}, r"free: the function returns int, expected text or a handle; remove free"),
        ({"lifetime": "n"}, "lifetime 'n': not a handle"),
        ({"lifetime": "q"}, "lifetime 'q': no such parameter"),
        ({"defaults": {"z": 1}}, "default of 'z': no such parameter"),
        ({"defaults": {"x": None}}, "default of 'x': 'n' after it has none"),
        ({"defaults": {"n": 2**31}}, r"default of 'n': expected an int in .*, found 2147483648"),
        ({"defaults": {"n": -(10**9999)}}, r"default of 'n': .*, found an int of 33216 bits$"),
        ({"defaults": {"n": "1" * 999}}, r"default of 'n': expected .*, found '1{79,80}'?\.*$"),
        ({"defaults": {"n": "1"}}, r"default of 'n': expected an int in .*, found '1'"),
        ({"gil": "hold"}, "gil, expected 'release' or 'keep', found 'hold'"),
        ({"outs": []}, "unknown option 'outs'; near names: 'out'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], match: str) -> None:
    """Every option is compared with the parameters and the result."""
    given = {"declaration": "int(double *x, int n)", **options}
    with pytest.raises(ExportError, match=f"function 'f': {match}"):
        CSourceModule("int f(double *x, int n) { return x && n; }", functions={"f": given})


def test_right_options_are_kept() -> None:
    """The options are in the declaration, and out-parameters are not passed."""
    code = "typedef struct foo foo; foo *get(const char *s, double *x, int n) { return 0; }\n"
    code += "void drop(foo *f) { (void)f; }\n"
    functions = {
        "get": {"out": ["x"], "free": "drop", "defaults": {"n": 3}, "doc": "Get it."},
        "drop": "void(foo *f)",
    }
    get, _ = CSourceModule(code, functions=functions).functions
    assert get.text == "foo *(const char *s, double *x, int n)"
    assert ([p.name for p in get.passed], get.result, get.defaults) == (
        ["s", "n"],
        "@foo",
        {"n": 3},
    )
    functions["drop"] = "void(foo *f, int n)"
    with pytest.raises(ExportError, match="free 'drop': expected a function of the handle alone"):
        CSourceModule(code.replace("foo *f)", "foo *f, int n)"), functions=functions)
    del functions["drop"]
    with pytest.raises(
        ExportError, match="free 'drop': not declared; declare it too: drop = 'void"
    ):
        CSourceModule(code, functions=functions)
