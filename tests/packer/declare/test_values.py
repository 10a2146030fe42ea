"""Structs and unions by value whose bytes are passed: arguments, results, callbacks, pointers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from packer.declare.declaration import AUTO
from runtime.structs.members import values_of

# x86-64 and AArch64 pass each in other registers.
TYPES = """
typedef union { int i; float f; } small;
typedef union { double d; long n; } wide;
typedef union { float f[2]; double d; } floats;
typedef union { float f[4]; } quad;
typedef struct { unsigned a : 3, b : 9; long c; } bits;
typedef struct { int tag; union { long n; double d; }; } tagged;
typedef struct { char c[7]; } bytes7;
typedef struct { float x, y; double z; } mixed;
typedef struct { int a, b; float c; } twelve;
typedef struct { double m[5]; } large;
typedef struct __attribute__((packed)) { double d; char c; } nine;
typedef struct __attribute__((packed)) { char c; int i; } packed;
typedef struct { char c; _Alignas(16) double d; } aligned;
typedef struct { double d; int : 5; } padded;
typedef struct { char *name[2]; int n; } names;
"""
EACH = """
static @ id_@(int a, @ x, double b) { return a + b == 3 ? x : (@){0}; }
@ (*get_@(void))(int, @, double) { return id_@; }
@ turn_@(@ (*f)(@, int), @ x) { return f(x, 3); }
@ pass_@(@ x) { return x; }
void out_@(@ x, @ *y) { *y = x; }
"""
NAMES = [line.rstrip(";").split()[-1] for line in TYPES.strip().splitlines()]
OF_CTYPES = [name for name in NAMES if name not in ("packed", "aligned", "padded")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Functions of each type."""
    source = TYPES + "".join(EACH.replace("@", name) for name in NAMES)
    functions = {"*": AUTO, **{f"out_{name}": {"out": ["y"]} for name in NAMES}}
    host = packer.CSourceModule(source, functions=functions)
    return runtime.load(packer.export_library(host, tmp_path_factory.mktemp("v") / "v.so"))


def filled(model: Any, name: str) -> Any:
    """A struct of which every byte that is not padding differs."""
    made = runtime.new(model, name)
    if name == "names":
        made.name, made.n = ["one", "two"], 5
        return made
    memoryview(made).cast("B")[:] = bytes(range(1, memoryview(made).nbytes + 1))
    return made


def plain(value: Any) -> Any:
    """The members, of a handle or of a named tuple."""
    found = values_of(value) if isinstance(value, runtime.Handle) else value._asdict()
    texts = {name: list(item.encode()) for name, item in found.items() if isinstance(item, str)}
    lists = {name: list(item) for name, item in found.items() if isinstance(item, tuple)}
    return {**found, **texts, **lists}


@pytest.mark.parametrize("name", NAMES)
def test_a_struct_of_any_kind_is_passed_by_value(model: Any, name: str) -> None:
    """As an argument and result, through `out`, to a callback and from it."""
    given = filled(model, name)
    expected = repr(plain(given))
    for found in (
        model[f"pass_{name}"](given),
        model[f"out_{name}"](given),
        model[f"turn_{name}"](lambda x, n: x if n == 3 else None, given),
    ):
        assert repr(plain(found)) == expected


@pytest.mark.parametrize("name", OF_CTYPES)
def test_a_pointer_to_a_function_passes_it(model: Any, name: str) -> None:
    """The call of a handle uses the registers that the compiler uses."""
    given = filled(model, name)
    assert repr(plain(model[f"get_{name}"]()(1, given, 2.0))) == repr(plain(given))


def test_mappings_tuples_and_bytes_are_taken(model: Any) -> None:
    """Members by name; a result has members."""
    assert model["pass_small"]({"f": 1.0}).i == 0x3F800000
    made = model["pass_tagged"]({"tag": 2, "d": 2.5})
    assert (made.tag, made.d) == (2, 2.5)
    assert model["pass_bits"]((5, 300, -7)).b == 300
    assert model["pass_small"](b"\x01\0\0\0").i == 1
    given = runtime.new(model, "names", name=["a", "b"], n=1)
    assert list(model["pass_names"](given).name) == ["a", "b"]
    assert model["turn_small"](lambda x, n: {"i": x.i + n}, {"i": 4}).i == 7


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, TypeError, "expected at least 4 bytes"),
        (3, TypeError, "argument 1 'x'"),
        (b"\0\0\0", ValueError, "expected at least 4 bytes"),
        ({"g": 1}, KeyError, "argument 1 'x': .*has no member 'g'"),
        ({"i": 2**31}, OverflowError, "argument 1 'x': member 'i': expected a value of type i32"),
        (np.zeros(4, np.int32), TypeError, "argument 1 'x'"),
    ],
)
def test_other_values_are_refused(
    model: Any, value: object, error: type[Exception], text: str
) -> None:
    """No byte of a wrong value reaches C."""
    with pytest.raises(error, match=text):
        model["pass_small"](value)
    with pytest.raises(TypeError, match="expected a handle 'small'|a handle 'small'"):
        model["pass_small"](runtime.new(model, "wide"))
    with pytest.raises((TypeError, KeyError, OverflowError, ValueError)):
        model["turn_small"](lambda x, n: value, {"i": 1})


def test_what_ctypes_cannot_pass_is_refused(model: Any) -> None:
    """A struct that is packed, and the result of a callable in a struct."""
    with pytest.raises(TypeError, match=r"\{packed\} by value: .*; call it in C"):
        model["get_packed"]()(1, {"c": 1, "i": 2}, 2.0)
    with pytest.raises(TypeError, match=r"\{padded\} by value: .*; call it in C"):
        model["get_padded"]()(1, {"d": 1.0}, 2.0)


SOURCE = """
#include <complex.h>
typedef struct { double x, y; } point;
typedef double complex (*square)(double complex);
static double complex square_of(double complex z) { return z * z; }
square squares(void) { return square_of; }
double complex turn(double complex (*f)(double complex, int *, char **), double complex z) {
  char *names[] = {"a", "b", 0};
  int n = 5;
  return f(z, &n, names) + n;
}
_Float16 twice(_Float16 (*f)(_Float16), _Float16 x) { return f(x); }
static _Float16 half_of(_Float16 x) { return x / 2; }
_Float16 (*half(void))(_Float16) { return half_of; }
int one_more(int n) { return n + 1; }
struct table { int (*each[2])(int); };
int first(const struct table *t, int n) { return t->each[0](n); }
int apply(int (*f)(int (*)(int), point), int n) { return f(one_more, (point){n, 1}); }
long double total(const long double *x, int n) {
  long double sum = 0;
  while (n--) sum += *x++;
  return sum;
}
void fill(long double *x, int n) { while (n--) x[n] = n; }
int halve(long double x, long double *y) { return *y = x / 2, 0; }
long double third(long double (*f)(long double), long double x) { return f(x) / 3; }
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Callbacks that get pointers and complex numbers, and pointers to long double."""
    functions = {"*": AUTO, "halve": {"out": ["y"]}}
    host = packer.CSourceModule(SOURCE, functions=functions)
    return runtime.load(packer.export_library(host, tmp_path_factory.mktemp("o") / "o.so"))


def test_a_callback_gets_complex_numbers_and_typed_pointers(other: Any) -> None:
    """Their targets are read and written, until the call ends."""
    kept = []

    def run(z: complex, n: Any, names: Any) -> complex:
        kept.extend([n, z])
        assert list(names.array(2)) == ["a", "b"]
        n[0] = 7
        return z * 2

    assert other["turn"](run, 1 + 2j) == 2 + 4j + 7
    assert kept[1] == 1 + 2j and kept[0].closed
    assert other["apply"](lambda g, p: g(int(p[0])) * 2, 4) == 10


def test_an_array_of_pointers_to_functions_is_a_member(other: Any) -> None:
    """Its items take callables."""
    table = runtime.new(other, "struct table", each=[lambda n: n * 3, None])
    assert (other["first"](table, 5), table.each[0](7), table.each[1]) == (15, 21, None)


def test_a_pointer_to_a_function_takes_complex_and_half(other: Any) -> None:
    """They are passed in the registers for floats."""
    assert other["squares"]()(1 + 2j) == (1 + 2j) ** 2
    assert other["half"]()(3) == 1.5
    assert other["twice"](lambda x: x * 2, 1.5) == 3


def test_long_double_is_passed_by_pointer(other: Any, tmp_path: Path) -> None:
    """Arrays of NumPy's longdouble, memory of `new`, results through `out`, callbacks."""
    x = np.arange(4, dtype=np.longdouble)
    made = runtime.new(other, "long double[3]")
    other["fill"](made, 3)
    assert (other["total"](x, 4), list(made), other["halve"](3.0)) == (6.0, [0, 1, 2], (0, 1.5))
    assert other["third"](lambda v: v * 6, 2.0) == 4.0
    with pytest.raises(TypeError, match="expected a contiguous CPU tensor of float128"):
        other["total"](np.arange(4.0), 4)
