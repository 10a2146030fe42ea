"""Declarations that are too large are refused with a sentence, within a second."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime
from packer.modules.c_source import CSourceModule
from runtime.error import ExportError
from runtime.signature import names_in_python

from ...support.compile import compile_c

PARAMETERS = ",".join(f"int a{i}" for i in range(20000))
DIGITS = "9" * 1_000_000


@pytest.mark.parametrize(
    "declaration",
    [
        f"int({PARAMETERS})",
        f"int(int a[{DIGITS}])",
        "int(" + "int (*(*" * 20000 + "a" + ")(int))" * 20000 + ")",
    ],
    ids=["parameters", "digits", "callbacks"],
)
def test_a_long_declaration_is_refused(declaration: str) -> None:
    """The message has the length and the limit, not the text."""
    match = (
        rf"function 'f': a declaration of {len(declaration)} characters, expected at most 65536$"
    )
    with pytest.raises(ExportError, match=match):
        CSourceModule("int f(int a) { return a; }", functions={"f": declaration})


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (f"int f({PARAMETERS})", "20000 parameters, expected at most 1024; pass a struct"),
        (
            f"int f(int a[{DIGITS}])",
            r"extent '9{79,80}\.\.\. is neither a positive number nor .*'int\(int \*a\)'$",
        ),
        (
            f"int f(int a[{2**63}])",
            "extent '9223372036854775808' is neither a positive number nor a parameter name",
        ),
        (
            f"int f(int a[1{'+1' * 20000}])",
            r"extent '1 \+ .*\.\.\. is neither a positive number nor a parameter name",
        ),
    ],
    ids=["parameters", "digits", "above 63 bits", "terms"],
)
def test_a_large_function_of_a_source_is_left_out(code: str, reason: str) -> None:
    """It costs no other function."""
    source = f"{code} {{ return 1; }} int last(int a) {{ return a; }}"
    module = CSourceModule(source, functions="auto")
    assert [d.name for d in module.functions] == ["last"]
    with pytest.raises(ExportError, match=reason):
        raise ExportError(module.left_out["f"])


def test_many_parameters_are_accepted(tmp_path: Path) -> None:
    """1024 are; each is passed by position or by name."""
    names = [f"a{i}" for i in range(1024)]
    text = f"int({', '.join(f'int {name}' for name in names)})"
    code = f"{text.replace('(', ' f(', 1)} {{ return a0 + a1023; }}"
    path = packer.export_library(CSourceModule(code, functions={"f": text}), tmp_path / "f.so")
    f = runtime.load(path)["f"]
    assert f(*range(1024)) == 1023
    assert f(**dict.fromkeys(names, 1)) == 2


def test_a_stub_of_many_parameters_is_written(tmp_path: Path) -> None:
    """Facts of another exporter with 60,000: names are compared in linear time."""
    facts = "packer-function 1\nparams " + " ".join(f"a{i}:i32" for i in range(60000)) + "\n"
    symbol = f"__attribute__((used)) const char __packer_fn_f[] = {_c_text(facts)};"
    wrapper = "int __tvm_ffi_f(void *s, const void *a, int n, void *r) { return s || a || n || r; }"
    compile_c(f"{symbol}\n{wrapper}", tmp_path / "f.so")
    assert "a59999: " in packer.stub_of(tmp_path / "f.so")
    assert names_in_python(["a", "b.c", "a", "b_c", "a"]) == (["a_", "b_c_", "a_2_", "b_c", "a"], 5)


def _c_text(text: str) -> str:
    escaped = text.replace("\n", "\\n")
    return "\n".join(f'"{escaped[i : i + 4000]}"' for i in range(0, len(escaped), 4000))
