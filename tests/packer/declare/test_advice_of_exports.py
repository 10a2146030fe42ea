"""An export takes what it advises for functions that it leaves out, until nothing is advised."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import packer
from runtime.error import ExportError

from ..read_source import compile_errors
from .test_odd_declarators import TYPES, is_c, odd_functions

TYPES_BY_VALUE = """
struct hooks { int (*open)(const char *); void *data; };
#pragma pack(push, 2)
struct placed { int a; char b; };
#pragma pack(pop)
struct mixed { union number w; int b : 2; };
typedef struct { pointp own; unsigned version; } picture, *picturep; typedef void *handle;
"""
# Refused for one part, for several, and for a result; mended by other types, or by options.
FUNCTIONS = """
int @(struct hooks h); struct hooks @(void); int @(struct mixed a, const struct mixed *b);
picture @(picture p); unsigned @(picturep a, picture b); double **@(int n, double **rows);
int @(int n, long double x, long double *y); int @(int n, handle *a, void **b); double *@(int n);
int @(int (*f)(struct flags, int), int n); int @(int n, ...); long double *@(long double x, ...);
int @(struct opaque **a, struct opaque **b, handle *c); int @(long double x, struct opaque **a);
int @(int n, double a[3 * n], double b[2 * n], double c[n + 1]); __int128 @(__int128 *a, long x);
int @(char **a, char ***b, const char ***c); void @(int n, long double a[n], double *b[n], wide *c);
const long double *@(_Float128 a, const _Float128 *b); struct opaque **@(struct opaque **a);
int @(struct flags f, long double x); int @(struct flags f, ...); int @(union number n, double **m);
"""


def advice_of(reason: str) -> Any:
    """The declaration that a reason shows; None if it shows none."""
    if found := re.search(r"(?:declare it so|an instance|convert): (\{ .* \})$", reason):
        return tomllib.loads(f"x = {found[1]}")["x"]
    found = re.search(r"declare '([^']*)'$", reason)
    return found and found[1]


def functions() -> list[str]:
    """All odd functions, named f0, f1, ..."""
    texts = re.findall(r"[^;@]*@[^;]*;", FUNCTIONS)
    odd = odd_functions()
    return [*odd, *(t.strip().replace("@", f"f{len(odd) + i}") for i, t in enumerate(texts))]


def module_of(texts: list[str], folder: Path, changes: Mapping[str, Any]) -> packer.CSourceModule:
    """A header of declarations, or a source of definitions, with changes."""
    text = "\n".join([TYPES + TYPES_BY_VALUE, *texts, ""])
    if "{ __builtin_trap" in text:
        return packer.CSourceModule(text, functions={"*": "auto", **changes}, options=["-w"])
    (folder / "all.h").write_text(text)
    return packer.from_header(folder / "all.h", functions=changes, options=["-w"])


@pytest.mark.parametrize("what", ["header", "source"])
def test_every_advice_of_an_export_is_taken(tmp_path: Path, what: str) -> None:
    """Each is exported alone, and what that advises, and so on; then all together compile."""
    texts = functions()
    if what == "source":
        defined = [f"{text[:-1]} {{ __builtin_trap(); }}" for text in texts]
        texts = [t for t in defined if is_c(TYPES_BY_VALUE + t, tmp_path)]
    reasons = module_of(texts, tmp_path, {}).left_out
    advised = {name: given for name, text in reasons.items() if (given := advice_of(text))}
    assert len(advised) >= 10
    refused = {}
    for name, given in advised.items():
        try:
            module_of(texts, tmp_path, {name: given})
        except ExportError as error:
            refused[name] = (reasons[name], error.message)
    assert refused == {}
    made = module_of(texts, tmp_path, advised)
    assert {d.name for d in made.functions} >= set(advised)
    assert compile_errors(made, tmp_path, "-w", "-Wno-psabi") == ""


def test_nothing_is_advised_that_the_source_contradicts(tmp_path: Path) -> None:
    """A struct by value stays one; the reason has the type that works, and what to write."""
    reasons = module_of(
        [
            "int f(struct placed h, ...) { __builtin_trap(); }",
            "struct placed g(int a) { __builtin_trap(); }",
        ],
        tmp_path,
        {},
    ).left_out
    assert reasons["f"].startswith("parameter 1 'h': ")
    assert reasons["f"].endswith(
        ", expected 'const struct placed *h'; export a function of supported types that calls it"
    )
    assert reasons["g"] == (
        "result: a struct by value: struct placed is placed by #pragma pack, "
        "expected 'const struct placed *'; export a function of supported types that calls it"
    )


def test_a_struct_is_refused_for_one_reason(tmp_path: Path) -> None:
    """By value after a pointer to it, whose layout was tried."""
    reasons = module_of(
        [
            "struct __attribute__((packed)) tail { int a; char b; unsigned : 3; };",
            "int f(struct tail *t) { return t->a; }",
            "int g(struct tail t) { return t.a; }",
        ],
        tmp_path,
        {},
    ).left_out
    assert list(reasons) == ["g"]
    assert ": struct tail has a bit-field without a name, expected 'const" in reasons["g"]
