"""The verdicts of mypy, compared with calls."""

from __future__ import annotations

import array
import ctypes
import decimal
import fractions
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import packer
import runtime
from packer.packaging.stubs import write_stub

from ....data.declarations import ROWS, SOURCE
from ....support.type_checker import errors_of
from ....test_declarations import declared

KINDS = r"""
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "dso_packer.h"
struct point { double x, y; };
struct counter { int n; };
struct other;
int f_int(int n) { return n; }
uint64_t f_long(uint64_t n) { return n; }
double f_float(double x) { return x; }
bool f_bool(bool b) { return b; }
double _Complex f_complex(double _Complex z) { return z; }
int f_text(const char *s) { return s != NULL; }
int f_wide(const wchar_t *s) { return s != NULL; }
int f_texts(const char *const *s) { return s != NULL; }
int f_read(const double *x) { return x != NULL; }
int f_write(double *x) { return x != NULL; }
int f_one(const double x[1]) { return x != NULL; }
int f_any(void *x) { return x != NULL; }
int f_const_any(const void *x) { return x != NULL; }
int f_bytes(const unsigned char *x) { return x != NULL; }
int f_buffer(char *x) { return x != NULL; }
int f_tensor(const DLTensor *x) { return x != NULL; }
int f_handle(struct other *x) { return x != NULL; }
struct point f_value(struct point p) { return p; }
int f_struct(const struct point *p) { return p != NULL; }
int f_updated(struct point *p) { return p != NULL; }
int f_callback(double (*f)(double)) { return f != NULL; }
struct other *other_new(void) { return (struct other *)1; }
struct counter *counter_new(void) { return malloc(sizeof(struct counter)); }
void *any_new(void) { return malloc(4); }
"""
KIND_NAMES = re.findall(r"\b(f_\w+)\(", KINDS)
# Names that a stub uses, as names of functions, structs, fields and parameters.
TAKEN = ["int", "str", "list", "tuple", "property", "overload", "Model", "model", "runtime", "Int"]
TAKEN += ["Any", "Callable", "Literal", "Protocol", "type_check_only", "Array", "Function", "self"]
NAMES = (
    """
#include <stdlib.h>
struct list { double list; int count; };
struct outer { struct list list; float tuple[3]; int index; int from; };
struct counter { int n; };
struct list list_make(struct list l, int self) { return l; }
struct outer outer_make(struct outer outer, int from, int from_) { return outer; }
struct counter *make(int __n, int m) { return malloc(__n + m); }
int plain(int n) { return n; }
"""
    + "\n".join(f"int x_{name}(int {name}) {{ return {name}; }}" for name in ("self", "lambda"))
    + "\n"
    + "\n".join(f"double y_{name}(double x, struct list l) {{ return 0; }}" for name in TAKEN)
)
NAMED = {
    "*": "auto",
    "class": {"symbol": "plain", "declaration": "int(int n)"},
    "counter": {"symbol": "plain", "declaration": "int(int n)"},
    **{n: {"symbol": f"y_{n}", "declaration": "double(double x, struct list l)"} for n in TAKEN},
}
USED_NAMES = (
    "one: float = model['int'](1.5, (1, 2))",
    "two: float = names.int(x=1.5, l={'list': 1, 'count': 2})",
    "three: int = model['class'](n=3)",
    "four: int = model['list_make']((1, 2), self=3).count",
    "five: names.outer = model['outer_make']({}, 1, 2)",
    "six: names.counter_handle | None = names.make(1, m=2)",
    "seven: float = names.outer_make({}, 1, 2).list.list",
    "eight: int = model['x_self'](self=1) + names.x_lambda(lambda_=2)",
)
IMPORTS = """\
import array
import ctypes
import decimal
import fractions
import math
from typing import TYPE_CHECKING, cast

import numpy as np

import runtime

if TYPE_CHECKING:
    from {stub} import Model
model = cast("Model", runtime.load("{stub}.so"))
"""
SCALARS = """
1
True
1.5
1j
None
"text"
b"text"
["a"]
("a",)
(1.0, 2.0)
{"x": 1.0, "y": 2.0}
{1, 2}
object()
np.int32(1)
np.uint8(1)
np.float32(1)
np.float64(1)
np.bool_(True)
np.complex64(1j)
np.str_("a")
decimal.Decimal(1)
fractions.Fraction(1, 2)
runtime.Device("cpu")
model["counter_new"]()
model["other_new"]()
model["any_new"]()
model["f_value"]((1, 2))
model["f_float"]
math.sin
float
lambda x: x
""".strip().split("\n")
# Arrays: their dtype, shape and layout are checked by the call only.
ARRAYS = """
bytearray(16)
memoryview(bytearray(16))
array.array("d", [1.0])
np.zeros(2)
np.zeros(2, np.complex128)
np.zeros(1, np.int64)
np.zeros(1, [("x", "f8"), ("y", "f8")])
ctypes.c_double(1.0)
(ctypes.c_double * 2)()
runtime.empty((2,), "float64")
""".strip().split("\n")
WRONG = {
    'model["maen"]': "No overload variant",
    'model["f_int"]("a")': "incompatible type",
    'model["f_int"](1, 2)': "Too many arguments",
    'model["f_int"]()': "Missing positional argument",
    'model["f_int"](m=3)': "Unexpected keyword argument",
    'model["f_int"](np.zeros(2))': "incompatible type",
    'model["f_read"]([1.0])': "incompatible type",
    'model["f_handle"](model["counter_new"]())': "incompatible type",
    'model["f_int"](1) + "a"': "Unsupported operand types",
    'model["f_value"]((1, 2)).z': "has no attribute",
    "kinds.f_imt(1)": "Module has no attribute",
    'kinds.f_int("a")': "incompatible type",
    'kinds.model["maen"]': "No overload variant",
    "kinds.f_callback(lambda: 1.0)": "lambda",
}
RIGHT = (
    "n: int = model['f_int'](n=3)",
    "x: float = model['f_value']({'x': 1, 'y': 2}).x",
    "point: kinds.point = model['f_value']((1, np.float32(2)))",
    "counter: kinds.counter | None = kinds.counter_new()",
    "signature: str | None = model['f_int'].signature",
    "module: runtime.Module = model",
    "other: int = runtime.load('x.so')['f'](1)",
    "text: str = kinds.model.type_key",
)


class Checked(NamedTuple):
    """The programs of this file, and the errors of mypy in them by line."""

    folder: Path
    errors: dict[str, dict[int, str]]


def program(stub: str, lines: list[str]) -> str:
    """Of imports and one statement on each line."""
    return "\n".join([IMPORTS.format(stub=stub), *lines]) + "\n"


def first_line(stub: str) -> int:
    """The number of the first line after the imports."""
    return len(IMPORTS.format(stub=stub).split("\n")) + 1


def row_lines() -> list[str]:
    """A function for each row of docs/declarations.md, on one line."""
    names = [next(iter(declared(row))) for row in ROWS if not row.compiler]
    lines = [f'{name} = model["{name}"]' for name in names]
    return lines + [f"def row_{row.name}() -> None: {row.python}" for row in ROWS]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One run of mypy, because its start takes longer than its programs."""
    folder = tmp_path_factory.mktemp("checked")
    rows = [row for row in ROWS if not row.compiler]
    functions = {name: given for row in rows for name, given in declared(row).items()}
    libraries = {
        "rows": packer.CSourceModule(SOURCE, functions=functions),
        "kinds": packer.CSourceModule(KINDS, functions="auto"),
        "names": packer.CSourceModule(NAMES, functions=NAMED),
    }
    for name, host in libraries.items():
        path = packer.export_library(host, folder / f"{name}.so")
        write_stub(path, folder / f"{name}.pyi")
    uses = [f'model["{name}"]({value})' for name in KIND_NAMES for value in SCALARS + ARRAYS]
    programs = {
        "used_rows.py": program("rows", row_lines()),
        "matrix.py": program("kinds", uses),
        "wrong.py": program("kinds", ["import kinds", *WRONG]),
        "right.py": program("kinds", ["import kinds", *RIGHT]),
    }
    names = program("names", ["import names", *USED_NAMES])
    programs["used_names.py"] = names.replace("import Model", "import ModelTree as Model")
    for file, text in programs.items():
        (folder / file).write_text(text)
    stubs = [f"{name}.pyi" for name in libraries]
    return Checked(folder, errors_of(folder, *stubs, *programs))


def test_stubs_are_accepted(checked: Checked) -> None:
    """Mypy finds nothing wrong in the stubs themselves."""
    assert not checked.errors["rows.pyi"]
    assert not checked.errors["kinds.pyi"]
    assert not checked.errors["names.pyi"]


def test_right_uses_are_accepted(checked: Checked) -> None:
    """Results have their types, and a tree is a Module."""
    assert not checked.errors["right.py"]


def test_names_of_the_stub_and_of_python_may_be_names_of_the_library(checked: Checked) -> None:
    """Functions, structs, fields and parameters keep their names, if Python allows these."""
    assert not checked.errors["used_names.py"]


@pytest.mark.parametrize("use", WRONG)
def test_wrong_use_is_found(checked: Checked, use: str) -> None:
    """A misspelt function, a wrong argument, a wrong number of arguments, a wrong result."""
    line = first_line("kinds") + 1 + list(WRONG).index(use)
    assert WRONG[use] in checked.errors["wrong.py"].get(line, "no error")


def test_rows_of_the_documentation(checked: Checked) -> None:
    """Only those rows are refused whose calls raise TypeError."""
    start = first_line("rows") + len([row for row in ROWS if not row.compiler])
    refused = {
        row.name: text
        for number, row in enumerate(ROWS)
        if not row.compiler
        for text in [checked.errors["used_rows.py"].get(start + number, "")]
        if re.search(r"\[(arg-type|call-arg|call-overload|union-attr|attr-defined)\]", text)
    }
    raising = {row.name for row in ROWS if row.result.startswith("raises TypeError")}
    assert set(refused) == raising, refused


def accepts(module: runtime.Module, name: str, value: str) -> bool:
    """Return True if a call does not refuse the type of its argument."""
    names: dict[str, Any] = {"np": np, "array": array, "ctypes": ctypes, "decimal": decimal}
    names |= {"fractions": fractions, "math": math, "runtime": runtime, "model": module}
    try:
        module[name](eval(value, names))
    except (ValueError, OverflowError):
        return True
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", KIND_NAMES)
def test_mypy_accepts_what_a_call_accepts(checked: Checked, name: str) -> None:
    """Every kind of parameter with every kind of value; mypy cannot tell one array from another."""
    module = runtime.load(checked.folder / "kinds.so")
    values = SCALARS + ARRAYS
    start = first_line("kinds") + KIND_NAMES.index(name) * len(values)
    errors = checked.errors["matrix.py"]
    refused = {value for number, value in enumerate(values) if start + number in errors}
    accepted = {value for value in values if accepts(module, name, value)}
    assert not refused & accepted, "mypy refuses what a call accepts"
    unknown = set(values) - refused - accepted - set(ARRAYS)
    assert not unknown, "mypy accepts what a call refuses"
