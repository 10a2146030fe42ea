"""Members of structs in C memory: read, written, kept alive, and refused."""

from __future__ import annotations

import functools
import gc
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

CODE = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef struct node node;
typedef struct { double x, y; } point;
union number { int32_t i; float f; };
struct node {
  node *next; const char *name; char *note; double value; int marks[2][3]; char tag[8];
  union number u; unsigned low : 3; int high : 5; _Bool on : 1; uint64_t wide : 40;
  struct { short a, b; } in[2]; union { int p; double q; }; double *data; node *kids[2];
  long double exact; char **words; __int128 huge; _Float16 half; double _Complex z;
  int (*compare)(int, int); struct hidden *hidden; int kind; point at; int rest[];
};
static int freed;
node *node_new(double value) { node *n = calloc(1, sizeof *n + 16); n->value = value; return n; }
void node_free(node *n) { freed++; free(n); }
node *node_static(void) { static node n; return &n; }
int num_freed(void) { return freed; }
const node *node_const(node *n) { return n; }
void node_name(node *n) { n->name = "caf\\xc3\\xa9"; n->note = "\\xff"; n->low = 5; n->high = -3; }
double norm(point p) { return p.x * p.x + p.y * p.y; }
double sum_x(const point *p, int n) { double s = 0; while (n--) s += p++->x; return s; }
double total(const double *x, long n) { double s = 0; while (n--) s += *x++; return s; }
double next_value(const node *n) { return n->next->value; }
long text_size(const node *n) { return (long)strlen(n->name); }
static double values[4] = {1, 2, 3, 4};
static int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
double *all_values(void) { return values; }
int (*all_rows(void))[2][3] { return &grid; }
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the tests."""
    functions = {"*": "auto", "node_new": {"free": "node_free"}}
    functions["node_const"] = {"lifetime": "n"}
    host = packer.CSourceModule(CODE, functions=functions)
    path = tmp_path_factory.mktemp("members") / "nodes.so"
    return runtime.load(packer.export_library(host, path))


def test_members_of_a_result_are_read_and_written_in_place(model: Any) -> None:
    """C sees what Python writes, and Python what C writes."""
    node = model["node_new"](2.5)
    model["node_name"](node)
    assert (node.value, node.name, node.low, node.high) == (2.5, "café", 5, -3)
    node.value, node.low, node.high, node.on, node.wide = 7, 7, 15, True, 2**40 - 1
    assert (node.value, node.low, node.high, node.on, node.wide) == (7, 7, 15, True, 2**40 - 1)
    node.exact, node.huge, node.half, node.z = 0.1, -(2**100), 0.5, 1 + 2j
    assert (node.exact, node.huge, node.half, node.z) == (0.1, -(2**100), 0.5, 1 + 2j)
    node.tag, node.u.f, node.q = "tag", 1.5, 2.5
    assert (node.tag, node.u.i, node.p) == ("tag", 0x3FC00000, 0)
    assert bytes(node.pointer("name").array(3)) == b"caf"
    assert "value" in dir(node) and node.hidden is None


def test_arrays_are_items_and_share_memory_with_numpy(model: Any) -> None:
    """An array has items and a length; NumPy sees the same memory, with the fields of structs."""
    node = runtime.new(model, "node", marks=[[1, 2, 3], [4, 5, 6]])
    node["in"][1].b = 9
    assert [list(row) for row in node.marks] == [[1, 2, 3], [4, 5, 6]]
    assert (len(node["in"]), node["in"][-1].b, node.marks[1][1:]) == (2, 9, [5, 6])
    np.asarray(node.marks)[0, 2] = 7
    assert node.marks[0][2] == 7
    points = runtime.new(model, "point[3]")
    array = np.asarray(points)
    array["x"] = [1, 2, 4]
    points[2] = (8, 0)
    assert model["sum_x"](points, 3) == model["sum_x"](array, 3) == array["x"].sum() == 11
    assert model["norm"](points[1]) == 4
    whole = np.asarray(node)
    assert (whole["marks"][1, 0], whole["at"]["x"], whole.dtype.itemsize) == (
        4,
        0,
        len(bytes(node)),
    )


def test_pointers_to_numbers_are_results(model: Any) -> None:
    """A result T * has the item that it points to, and others after array(n)."""
    first = model["all_values"]()
    assert (first.kind, first[0], list(first.array(4))) == ("double", 1, [1, 2, 3, 4])
    assert model["total"](first.array(4), 4) == 10 and model["total"](first, 1) == 1
    rows = model["all_rows"]()
    assert (len(rows), np.asarray(rows).tolist()) == (2, [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(IndexError, match=r"index 1, expected one of 1 items; array\(n\) tells"):
        first[1]


def test_a_pointer_keeps_what_it_refers_to(model: Any) -> None:
    """Text, arrays and structs that are assigned live as long as the struct."""
    node = runtime.new(model, "struct node", name="longer than a small text " * 9)
    other = runtime.new(model, "node", {"value": 4})
    gone = weakref.ref(other)
    node.next, node.data, node.kids = other, np.arange(3.0), [node, None]
    del other
    gc.collect()
    assert (model["next_value"](node), model["text_size"](node)) == (4, 225)
    assert (list(node.data.array(3)), node.kids[0] == node, node.kids[1]) == ([0, 1, 2], True, None)
    del node
    gc.collect()
    assert gone() is None


def test_members_have_the_lifetime_of_the_object(model: Any) -> None:
    """A released object and its parts are closed; a part and a view keep the object alive."""
    before = model["num_freed"]()
    part = model["node_new"](1).at
    gc.collect()
    part.x = 3
    assert (part.x, model["num_freed"]()) == (3, before)
    del part
    gc.collect()
    assert model["num_freed"]() == before + 1
    node = model["node_new"](1)
    part, view = node.at, memoryview(node)
    with pytest.raises(ValueError, match="in use by a view; close it after the view"):
        node.close()
    view.release()
    node.close()
    for use in (lambda: node.value, lambda: part.x, lambda: setattr(part, "x", 1)):
        with pytest.raises(ValueError, match="expected an open handle; its object was released"):
            use()
    with pytest.raises(BufferError):
        memoryview(part)


REFUSED = {
    "missing": (AttributeError, "has no member 'valu'; near names: 'value'"),
    "name": (KeyError, "has no member 'nothing'"),
    "number": (TypeError, "member 'value': expected a value of type f64, found 'x'"),
    "bits": (OverflowError, "member 'low': expected a value of type u32, found 8"),
    "bool": (OverflowError, "member 'on': expected a value of type bool, found 2"),
    "huge": (OverflowError, "member 'huge': expected a value of type i128"),
    "items": (ValueError, "member 'tag': expected 8 items, found 9"),
    "rows": (ValueError, "item 0: expected 3 items, found 1"),
    "text": (ValueError, "text of 1 bytes, expected UTF-8"),
    "nul": (ValueError, "member 'name': expected text without NUL"),
    "kind": (TypeError, "member 'next': expected a handle 'node', found <Handle point"),
    "dtype": (TypeError, "member 'data': expected a contiguous array of f64"),
    "owner": (TypeError, "the object belongs to C, which"),
    "owned text": (TypeError, "which may free the pointer; call a function that sets it"),
    "free": (ValueError, "expected an object that the library made"),
    "free part": (ValueError, "which is a part or runtime.new's"),
    "const": (TypeError, "member 'value': expected a writable struct, found a const one"),
    "index": (IndexError, "index 2, expected one of 2 items"),
    "delete": (TypeError, "member 'value' cannot be deleted"),
    "no array": (TypeError, "expected an array, which has a length"),
    "pointer": (TypeError, "expected a member with an address, found the bit-field 'low'"),
    "count": (ValueError, "array: expected a number of items of at least 0, found -1"),
    "code": (TypeError, "member 'compare': expected a value of type .fn"),
    "by value": (TypeError, "expected a handle 'point', found a handle 'node'"),
    "closed": (ValueError, "member 'next': expected an open handle"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_uses_are_refused(model: Any, what: str) -> None:
    """Each wrong use of a member is an error that says what was expected."""
    node, owned = runtime.new(model, "node"), model["node_new"](1)
    model["node_name"](node)
    closed = runtime.new(model, "node")
    closed.close()
    uses: dict[str, Any] = {
        "missing": lambda: node.valu,
        "name": lambda: node["nothing"],
        "number": lambda: setattr(node, "value", "x"),
        "bits": lambda: setattr(node, "low", 8),
        "bool": lambda: setattr(node, "on", 2),
        "huge": lambda: setattr(node, "huge", 2**127),
        "items": lambda: setattr(node, "tag", "123456789"),
        "rows": lambda: setattr(node, "marks", [[1], [2]]),
        "text": lambda: node.note,
        "nul": lambda: setattr(node, "name", "a\0b"),
        "kind": lambda: setattr(node, "next", runtime.new(model, "point")),
        "dtype": lambda: setattr(node, "data", np.zeros(2, "f4")),
        "owner": lambda: setattr(model["node_static"](), "name", "a"),
        "owned text": lambda: setattr(owned, "name", "a"),
        "free": lambda: model["node_free"](node),
        "free part": lambda: model["node_free"](runtime.new(model, "node[2]")[1]),
        "const": lambda: setattr(model["node_const"](owned), "value", 1),
        "index": lambda: node["in"][2],
        "delete": lambda: delattr(node, "value"),
        "no array": lambda: len(node),
        "pointer": lambda: node.pointer("low"),
        "count": lambda: node.array(-1),
        "code": lambda: setattr(node, "compare", "x"),
        "by value": lambda: model["norm"](node),
        "closed": lambda: setattr(node, "next", closed),
    }
    error, text = REFUSED[what]
    with pytest.raises(error, match=text.replace("(", r"\(")):
        uses[what]()


@pytest.mark.parametrize("type_", ["nod", "int(", "node[", "node[-1]", "", 3])
def test_new_refuses_unknown_types(model: Any, type_: Any) -> None:
    """A type that the library does not describe is refused."""
    with pytest.raises(ValueError, match="new: expected a struct that functions of the library"):
        runtime.new(model, type_)


def test_new_refuses_sizes_that_memory_cannot_have(model: Any) -> None:
    """A count beyond all memory is an error."""
    with pytest.raises(ValueError, match="array of 99999999999999 items"):
        runtime.new(model, "node[99999999999999]")
    with pytest.raises(MemoryError):
        runtime.new(model, "point[200000000000000]")
    with pytest.raises(TypeError, match="new: expected a loaded library"):
        runtime.new(3, "point")  # type: ignore[arg-type]


NUMBERS = ("signed char", "short", "int", "long", "unsigned char", "unsigned short", "unsigned",
           "unsigned long", "_Bool", "float", "double", "enum sign")  # fmt: skip
BITS = {"signed char": 8, "short": 16, "int": 32, "long": 64, "unsigned char": 8,
        "unsigned short": 16, "unsigned": 32, "unsigned long": 64, "_Bool": 1}  # fmt: skip


def generated(source: random.Random, depth: int) -> str:
    """The members of a random struct or union."""
    lines = []
    for i in range(source.randint(1, 6)):
        type_, choice = source.choice(NUMBERS), source.random()
        if choice < 0.3 and type_ in BITS:
            lines.append(f"{type_} m{i} : {source.randint(1, BITS[type_])};")
        elif choice < 0.45 and depth:
            kind = source.choice(["struct", "union"])
            lines.append(f"{kind} {{ {generated(source, depth - 1)} }} m{i};")
        elif choice < 0.6:
            lines.append(f"{type_} m{i}[{source.randint(1, 3)}];")
        elif choice < 0.7:
            lines.append(f"{type_} *m{i};")
        else:
            lines.append(f"{type_} m{i};")
    return " ".join(lines)


def numbers_of(handle: Any, path: str = "") -> list[str]:
    """The paths of the numbers in a struct."""
    found = []
    for name in dir(handle):
        value = getattr(handle, name) if name.startswith("m") else None
        if isinstance(value, runtime.Handle) and "." in (value.kind or ""):
            found += numbers_of(value, f"{path}{name}.")
        elif isinstance(value, int | float):
            found.append(path + name)
    return found


def exported(code: list[str], path: Path) -> Any:
    """Export the lines of a source, and load the library."""
    host = packer.CSourceModule("\n".join(code), functions="auto")
    return runtime.load(packer.export_library(host, path))


def test_generated_layouts_are_those_of_the_compiler(tmp_path: Path) -> None:
    """Each number of random structs has in Python the value that C stored, and the reverse."""
    source = random.Random(7)
    code, types = ["enum sign { MINUS = -1, PLUS = 1 };"], range(40)
    for k in types:
        code.append(f"struct generated{k} {{ {generated(source, 3)} }};")
        code.append(f"void use{k}(struct generated{k} *s) {{ (void)s; }}")
    first = exported(code, tmp_path / "first.so")
    places = [(k, path) for k in types for path in numbers_of(runtime.new(first, f"generated{k}"))]
    for i, (k, path) in enumerate(places):
        code.append(f"void set{i}(struct generated{k} *p) {{ p->{path} = 1; }}")
        code.append(f"int is{i}(struct generated{k} *p) {{ return p->{path} != 0; }}")
    model = exported(code, tmp_path / "second.so")
    assert len(places) > 150
    for i, (k, path) in enumerate(places):
        handle = runtime.new(model, f"struct generated{k}")
        model[f"set{i}"](handle)
        *parents, name = path.split(".")
        target = functools.reduce(getattr, parents, handle)
        assert abs(getattr(target, name)) == 1, path  # a signed bit is -1
        setattr(target, name, 0)
        assert not model[f"is{i}"](handle) and not any(bytes(handle)), path
