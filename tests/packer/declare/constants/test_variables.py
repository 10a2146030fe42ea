"""Variables of C: read and written in place, by type."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy
import pytest

import packer
import runtime
from packer.declare.declaration import AUTO

SOURCE = """
struct point { double x, y; };
typedef enum { LOW = -1, HIGH } level;
int count = 5;
const double ratio = 0.5;
static const int hidden = 77;
static int internal;
_Thread_local unsigned char mine = 3;
float table[2][3] = {{1, 2, 3}, {4, 5, 6}};
const short primes[] = {2, 3, 5};
const char version[] = "1.2";
char buffer[4] = "abc";
const char *title = "hello";
struct point origin = {1, 2};
level chosen = HIGH;
_Atomic int atomic;
struct point many[2];
int (*pointer)(int);
int add(int a) { return internal++, a + count; }
float corner(void) { return table[1][2]; }
"""


@pytest.fixture
def model(tmp_path: Path) -> runtime.Module:
    """The library of the source."""
    path = packer.export_library(packer.CSourceModule(SOURCE, functions=AUTO), tmp_path / "v.so")
    return runtime.load(path)


def test_variables_are_read(model: runtime.Module) -> None:
    """Numbers, text, structs and enums by value, arrays as views; static ones only if const."""
    found = model.globals
    names = "count ratio hidden mine table primes version buffer title origin chosen atomic many"
    assert list(found) == [*names.split(), "pointer"]
    assert (found.count, found.ratio, found.hidden, found.mine) == (5, 0.5, 77, 3)
    assert (found["version"], found["title"], found["chosen"]) == ("1.2", "hello", 0)
    assert (tuple(found.origin), bytes(found.buffer)) == ((1.0, 2.0), b"abc\0")
    assert found.table.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (found.primes.tolist(), found.primes.readonly) == ([2, 3, 5], True)


def test_variables_are_written_in_place(model: runtime.Module) -> None:
    """The code sees a new value; an array is written item by item, also by NumPy."""
    model.globals["count"] = 7
    assert model["add"](1) == 8
    model.globals.chosen = model.constants.LOW
    model.globals.origin = {"x": 3, "y": 4}
    assert (model.globals.chosen, tuple(model.globals.origin)) == (-1, (3.0, 4.0))
    numpy.asarray(model.globals.table)[1, 2] = 9
    assert model["corner"]() == 9


def test_any_variable_is_read_and_written_in_place(model: runtime.Module) -> None:
    """Arrays of structs, atomics, pointers to functions and text, which the library keeps."""
    found = model.globals
    found.atomic += 4
    found.many[1].y = 2.5
    found.many = [(7, 8), found.many[1]]
    assert (found.atomic, found.many[0].x, found.many[1].y, found.pointer) == (4, 7.0, 2.5, None)
    found.pointer = lambda n: n * 10
    found.title = "other"
    gc.collect()
    assert (found.pointer(4), found.title) == (40, "other")
    found.title = None
    assert found.title is None


def test_a_view_keeps_the_library_loaded(model: runtime.Module) -> None:
    """The memory of an array is the library's."""
    table = model.globals.table
    del model
    gc.collect()
    assert table[0, 1] == 2


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("count", 2**31, OverflowError, "expected an int in -2147483648 .. 2147483647"),
        ("count", "1", TypeError, "expected an int, found str"),
        ("ratio", 1.0, runtime.PackerError, "ratio: a const variable, expected one to write"),
        ("title", 3, OverflowError, "member 'title': expected a value of type str, found 3"),
        ("table", 1, runtime.PackerError, r"table: an array, expected items: globals\['table'\]"),
        ("nothing", 1, runtime.ConstantNotFoundError, "no variable 'nothing' in the tree"),
        ("many", 1, TypeError, "member 'many': expected 2 items, found 1"),
        ("pointer", 1, OverflowError, r"member 'pointer': expected a value of type \*fn"),
    ],
)
def test_wrong_values_are_refused(
    model: runtime.Module, name: str, value: object, error: type[Exception], text: str
) -> None:
    """The variable keeps its value; the error says what is possible."""
    with pytest.raises(error, match=text):
        model.globals[name] = value
    with pytest.raises(runtime.PackerError, match="cannot be deleted"):
        del model.globals["count"]
    assert model.globals.count == 5


@pytest.mark.parametrize(
    "options",
    [
        {"format": "tvm-ffi"},
        {"output": packer.Output(visibility="declared")},
        {"output": packer.Output(legacy_calls=True)},
        {"options": ["-flto"]},
    ],
)
def test_every_kind_of_library_has_them(options: dict[str, object], tmp_path: Path) -> None:
    """Dialects, hidden symbols, packed C functions and optimisation of the link."""
    module = packer.CSourceModule(f"#define N 3\n{SOURCE}", functions=AUTO)
    loaded = runtime.load(packer.export_library(module, tmp_path / "v.so", **options))
    loaded.globals.count = 2
    assert (loaded.constants.N, loaded["add"](1)) == (3, 3)


def test_a_system_library_has_them(tmp_path: Path) -> None:
    """By the prefix of its names."""
    source = "#define N 3\nint count = 4;\nint f(int x) { return x + count; }\n"
    module = packer.CSourceModule(source, functions=AUTO)
    archive = packer.export_library(
        module, tmp_path / "s.o", system_lib=True, c_symbol_prefix="vars_"
    )
    packer.create_shared(tmp_path / "s.so", [archive])
    runtime.load(tmp_path / "s.so")
    loaded = runtime.system_lib("vars_")
    loaded.globals.count = 6
    assert (loaded.constants.N, loaded["f"](1)) == (3, 7)


def test_a_header_has_the_variables_of_its_library(tmp_path: Path) -> None:
    """``extern`` ones, by the header's own names for them."""
    (tmp_path / "kit.h").write_text("extern int kit_level;\n#define kit_level kit_level\n")
    (tmp_path / "kit.c").write_text("int kit_level = 3;\n")
    packer.create_shared(tmp_path / "libkit.so", [tmp_path / "kit.c"])
    module = packer.from_header(tmp_path / "kit.h", libraries=["kit"])
    folder = [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}"]
    path = packer.export_library(module, tmp_path / "k.so", options=folder)
    loaded = runtime.load(path)
    loaded.globals.kit_level += 1
    assert loaded.globals.kit_level == 4
