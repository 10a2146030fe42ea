"""Declarations are compiled against the user's code: a wrong one is a compile error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from packer.declare.c_type import parse_functions
from packer.declare.redeclaration import redeclarations
from runtime.error import ExportError

from ...support.wrapped_library import WARNINGS, gcc, glue_source, parse

USER_CODE = """
#include "dso_packer.h"
#include <stdbool.h>
#include <stddef.h>
long total(const int64_t *x, long n) { long s = 0; while (n--) s += *x++; return s; }
bool flip(bool b, DLTensor *t, const char *s, size_t n) { return !b && t && s && n; }
"""
USER_FUNCTIONS = {
    "total": "int64_t(const long *x, ptrdiff_t n)",
    "flip": "_Bool(bool b, DLTensor *t, const char *s, unsigned long n)",
}


def compile_user(
    folder: Path, code: str, functions: dict[str, str], language: str
) -> subprocess.CompletedProcess[str]:
    """Compile a user's unit with its redeclarations."""
    source = folder / f"user.{language}"
    source.write_text(code + redeclarations(parse_functions(functions, module="c"), language))
    return gcc("-c", source, "-o", folder / "user.o", *WARNINGS)


def test_a_right_declaration_compiles_in_c(tmp_path: Path) -> None:
    """Types that the compiler holds for the same are the same."""
    assert compile_user(tmp_path, USER_CODE, USER_FUNCTIONS, "c").stderr == ""


def test_a_right_declaration_compiles_in_cpp(tmp_path: Path) -> None:
    """C++ code is declared in extern "C"."""
    code = USER_CODE.replace("long total", 'extern "C" long total')
    code = code.replace("bool flip", 'extern "C" bool flip')
    assert compile_user(tmp_path, code, USER_FUNCTIONS, "cc").stderr == ""


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("long total(const float *x, long n) { return x && n; }", "c"),
        ("int total(const long *x, long n) { return x && n; }", "c"),
        ('extern "C" long total(const float *x, long n) { return x && n; }', "cc"),
        ("long total(const long *x, long n) { return x && n; }", "cc"),
        ("int total;", "c"),
        ("#define nothing \\", "c"),
    ],
)
def test_a_wrong_declaration_is_a_compile_error(tmp_path: Path, code: str, language: str) -> None:
    """The compiler refuses it, and its text names the function and both places."""
    functions = {"total": "int64_t(const int64_t *x, int64_t n)"}
    if "nothing" in code:
        code = "long total(void) { return 0; }\n" + code  # a line splice swallows no declaration
    made = compile_user(tmp_path, code, functions, language)
    assert made.returncode != 0
    assert "total" in made.stderr
    assert "<function declarations>:" in made.stderr


def test_a_name_that_is_none_in_c_cannot_be_redeclared() -> None:
    """Dots are for LLVM names."""
    with pytest.raises(ExportError, match=r"'a.b': the name has a '.'"):
        redeclarations([parse("void()", "a.b")], "c")


@pytest.mark.parametrize("code", ["", "static long f(long n) { return n; }", "long f(long n);"])
@pytest.mark.parametrize("linker", ["bfd", "gold"])
def test_a_function_that_the_library_lacks_is_a_link_error(
    tmp_path: Path, code: str, linker: str
) -> None:
    """A declared function that no module defines is found before anything is loaded."""
    declarations = parse_functions({"f": "long(long n)"}, module="c")
    user, glue = tmp_path / "user.c", tmp_path / "glue.c"
    user.write_text(code + (redeclarations(declarations, "c") if code else ""))
    glue.write_text(glue_source(declarations))
    options = ["-shared", f"-fuse-ld={linker}", "-Wno-unused-function"]
    made = gcc(user, glue, *options, "-o", tmp_path / "lib.so")
    assert made.returncode != 0
    assert "symbol" in made.stderr
    assert "f" in made.stderr
