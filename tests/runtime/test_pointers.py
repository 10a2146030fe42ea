"""Pointers to pointers and to functions: lists, memory that C writes, and calls both ways."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

CODE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef struct node { int v; struct node *next; } node_t;
typedef int (*binary)(int, int);
typedef struct ops {
  binary f; double (*g)(double x, const char *name); struct ops *(*self)(struct ops *o);
  void (*bad)(int, ...); int count;
} ops;
typedef struct { char *base; size_t len; binary f; const int *numbers; } slice, *slicep;
static int add(int a, int b) { return a + b; }
static struct ops *same(struct ops *o) { o->count++; return o; }
long sum_rows(const uint8_t *const *rows, int h, int w) {
  long s = 0; for (int i = 0; i < h; i++) for (int j = 0; j < w; j++) s += rows[i][j]; return s;
}
void double_rows(double **rows, int h) { for (int i = 0; i < h; i++) rows[i][0] *= 2; }
int total(node_t *const nodes[], int n) { int s = 0; while (n--) s += nodes[n]->v++; return s; }
void allocate(unsigned char **out) { *out = malloc(4); memcpy(*out, "abcd", 4); }
void swap(int **p) { int *t = p[0]; p[0] = p[1]; p[1] = t; }
int three(float *x[3]) { return x[2] != 0; }
int set_pair(int **pair) { static int values[] = {4, 2}; *pair = values; return 2; }
node_t *make(int v) { node_t *n = calloc(1, sizeof *n); n->v = v; return n; }
double imaginary(const double (*x)[2], int n) { return x[n - 1][1]; }
binary adder(int is_there) { return is_there ? add : 0; }
int apply(binary f, int a) { return f(a, 2); }
int run(ops *o, int a) { return o->f(a, 4); }
double run_g(ops *o) { return o->g(2.5, "abc"); }
void fill(ops *o) { memset(o, 0, sizeof *o); o->f = add; o->self = same; }
static const int k[] = {7, 8};
slice cut(char *base, unsigned n) { slice s = {base, n, add, k}; return s; }
int sum_of(slice s) { int n = s.f ? s.f(1, 2) : 0; while (s.len--) n += s.base[s.len]; return n; }
size_t length(slicep s) { return s->len; }
int from(void *(*get)(size_t n), const char *(*text)(void)) {
  int *p = get(4); const char *t = text(); return (p ? *p : -1) + (t ? (int)strlen(t) : 0);
}
double each(double (*f)(struct node n), struct node (*g)(int)) {
  return f(g(3)) + f((struct node){5, 0});
}
long half(_Atomic(long) *n, typeof(int) by) { return *n / by; }
long double twice(long double x) { return 2 * x; }
int flip(_Bool *b) { *b = !*b; return *b; }
int listed(__builtin_va_list v) { (void)v; return 0; }
"""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library, and its module's reasons as `left_out`."""
    functions = {"*": "auto", "set_pair": {"out": ["pair"]}}
    host = packer.CSourceModule(CODE, functions=functions)
    assert list(host.left_out) == ["listed"]
    assert "va_list" in host.left_out["listed"]
    path = tmp_path_factory.mktemp("kit") / "kit.so"
    return runtime.load(packer.export_library(host, path))


def test_a_list_of_arrays_handles_or_structs_is_passed(kit: Any) -> None:
    """C reads and writes what the pointers of a list point to."""
    rows = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert kit["sum_rows"](list(rows), 2, 3) == 15
    x = np.ones((2, 2))
    kit["double_rows"](list(x), 2)
    assert x.tolist() == [[2, 1], [2, 1]]
    nodes, given = [kit["make"](i) for i in (1, 2)], {"v": 5}
    assert kit["total"](nodes, 2) == 3 and [n.v for n in nodes] == [2, 3]
    assert kit["total"]([given, nodes[0], {"v": 1}], 2) == 7


def test_pointers_that_c_writes_are_read(kit: Any) -> None:
    """In a list, in memory of `new`, and as a result; a tuple cannot be changed."""
    out: list[Any] = [None]
    kit["allocate"](out)
    assert bytes(out[0].array(4)[:]) == b"abcd" and out[0].kind == "uint8_t"
    cell = runtime.new(kit, "unsigned char *[2]")
    kit["allocate"](cell)
    assert bytes(cell[0].array(4)[:]) == b"abcd" and cell[1] is None
    count, pair = kit["set_pair"]()
    assert (count, pair.array(2)[:]) == (2, [4, 2])
    x, y = np.array([1], np.int32), np.array([2], np.int32)
    items = [x, y]
    kit["swap"](items)
    assert [item[0] for item in items] == [2, 1]
    with pytest.raises(TypeError, match="item 0 was changed by the function, expected a list"):
        kit["swap"]((x, y))


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("swap", lambda kit: np.zeros((2, 2), np.uint8), "expected a list of arrays or handles"),
        ("swap", lambda kit: [1], r"'p\[0\]': expected an array \(\*i32\), found 1"),
        ("swap", lambda kit: [np.zeros(2)], "expected a contiguous array of i32"),
        (
            "swap",
            lambda kit: runtime.new(kit, "double *"),
            "expected a handle of pointers to int32",
        ),
        ("swap", lambda kit: kit["make"](1), "expected a handle of pointers to int32_t, found"),
        ("swap", lambda kit: "text", "expected a list of arrays or handles, a handle or None"),
        ("three", lambda kit: [None] * 2, "expected at least 3 elements"),
        ("three", lambda kit: None, "expected at least 3 elements"),
    ],
)
def test_wrong_pointers_are_refused(kit: Any, name: str, given: Any, text: str) -> None:
    """An array of bytes is not one of pointers."""
    with pytest.raises((TypeError, ValueError), match=text):
        kit[name](given(kit))


def test_pointers_to_functions_are_called(kit: Any) -> None:
    """A result and a member are callable; arguments are checked, and either goes back to C."""
    add = kit["adder"](1)
    assert (add(2, 3), kit["adder"](0), kit["apply"](add, 5)) == (5, None, 7)
    for wrong, error in (((1,), TypeError), ((1, 2**31), OverflowError), (("a", 1), TypeError)):
        with pytest.raises(error, match="expected"):
            add(*wrong)
    table = runtime.new(kit, "ops")
    kit["fill"](table)
    assert (table.f(3, 4), table.g, table.self(table).count) == (7, None, 1)
    with pytest.raises(TypeError, match="expected a pointer to a function"):
        kit["make"](1)()


def test_python_functions_are_members(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """C calls them; an exception is reported, and C gets 0; the struct keeps them."""
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_type))
    table = runtime.new(kit, "ops", f=lambda a, b: a - b, g=lambda x, name: x + len(name))
    gc.collect()
    assert (kit["run"](table, 9), table.f(1, 2), kit["run_g"](table)) == (5, -1, 5.5)
    table.f = kit["adder"](1)
    assert kit["run"](table, 9) == 13
    table.f = lambda a, b: 1 // 0
    assert (kit["run"](table, 9), reported) == (0, [ZeroDivisionError])
    with pytest.raises(TypeError, match="expected a value of type"):
        table.f = "text"


def test_structs_with_pointers_are_values(kit: Any) -> None:
    """As arguments and results; bytes that a struct points to are not read as text."""
    base = np.frombuffer(b"abc", np.int8).copy()
    made = kit["cut"](base, 3)
    assert (made.base.address, made.len) == (base.ctypes.data, 3)
    assert made.numbers.array(2)[:] == [7, 8]
    with pytest.raises(TypeError, match="const"):
        made.numbers.array(2)[0] = 1
    assert kit["sum_of"](made) == kit["sum_of"]((base, 3, made.f, None)) == 297
    assert kit["sum_of"]({"base": base, "len": 1}) == 97
    assert kit["length"](runtime.new(kit, "slice", len=4)) == 4
    with pytest.raises(TypeError, match="expected a handle 'char', found"):
        kit["sum_of"]((kit["make"](1), 0, None, None))


def test_callbacks_return_pointers_and_structs(kit: Any) -> None:
    """A pointer is a handle or None; text would not outlive the callback."""
    number, text = runtime.new(kit, "int[1]"), runtime.new(kit, "char[4]")
    number[0], memoryview(text).cast("B")[:] = 40, b"ab\0\0"
    assert kit["from"](lambda n: number, lambda: text) == 42
    assert kit["from"](lambda n: None, lambda: None) == -1
    with pytest.raises(TypeError, match="expected a handle .* found str"):
        kit["from"](lambda n: None, lambda: "text")
    assert kit["each"](lambda n: n[0] * 2.0, lambda v: (v, None)) == 16


def test_other_words_of_types_are_read(kit: Any) -> None:
    """_Atomic, typeof, _Bool, pairs of doubles as complex numbers, and long double as double."""
    assert kit["half"](np.array([9], np.int64), 2) == 4
    flag = np.array([False])
    assert (kit["flip"](flag), flag[0], kit["twice"](1.25)) == (1, True, 2.5)
    z = np.array([1 + 2j, 3 + 4j])
    assert kit["imaginary"](z, 2) == kit["imaginary"](z.view(float).reshape(2, 2), 2) == 4
    with pytest.raises(TypeError, match="complex128"):
        kit["imaginary"](z.astype(np.complex64), 2)


def test_handles_are_reused_only_when_they_ended(kit: Any, tmp_path: Path) -> None:
    """Many parts come and go, in chains longer than the C stack, and by the collector."""
    first = last = runtime.new(kit, "node_t", v=0)
    for i in range(1, 30_000):
        node = runtime.new(kit, "node_t", v=i)
        last.next, last = node, node
    del last, node
    assert (
        sum(1 for _ in iter(lambda n=[first]: n.__setitem__(0, n[0].next) or n[0], None)) == 29_999
    )
    del first
    gc.collect()
    assert runtime.new(kit, "node_t").v == 0
