"""runtime.load(path, functions={...}): the functions of libraries that others made."""

from __future__ import annotations

import gc
import subprocess
from pathlib import Path

import numpy as np
import pytest

import runtime

from ..support.compile import compile_c
from ..support.process import run_python

CODE = """
#include <stdlib.h>
struct box { double value; };
struct box *box_new(double value) {
  struct box *b = malloc(sizeof *b);
  b->value = value;
  return b;
}
double box_get(const struct box *b) { return b->value; }
void box_free(struct box *b) { free(b); }
long add(long a, long b) { return a + b; }
int version = 3;
static int num_texts;
char *text_new(void) { ++num_texts; return calloc(2, 1); }
void text_free(char *text) { --num_texts; free(text); }
int count_texts(void) { return num_texts; }
"""
ADD = {"add": "long(long a, long b)"}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library of another project, without a soname."""
    compile_c(CODE, tmp_path / "others.so")
    return tmp_path / "others.so"


def test_a_function_of_libm() -> None:
    """It is an indirect function, which the processor chooses."""
    libm = subprocess.check_output(["gcc", "-print-file-name=libm.so.6"], text=True).strip()
    m = runtime.load(libm, functions={"cos": "double(double x)"})
    assert m["cos"](0) == 1.0
    assert "cos" in m.function_names()
    assert m["cos"].signature == "double cos(double x)"


def test_libz_compresses_a_buffer() -> None:
    """Two libraries called so exchange data."""
    import zlib

    libz = subprocess.check_output(["gcc", "-print-file-name=libz.so.1"], text=True).strip()
    size = "unsigned long"
    types = f"int(unsigned char *to, {size} *size, const unsigned char *data, {size} n)"
    z = runtime.load(libz, functions={"compress": types})
    made, size = bytearray(100), np.array([100], np.uint64)
    assert z["compress"](made, size, b"a" * 1000, 1000) == 0
    assert zlib.decompress(made[: size[0]]) == b"a" * 1000


def test_a_library_without_a_soname(library: Path) -> None:
    """Arguments are checked as for an own function."""
    m = runtime.load(library, functions=ADD)
    assert m["add"](40, 2) == 42
    with pytest.raises(TypeError, match="add: argument 2 'b'"):
        m["add"](1, "2")


def test_functions_that_are_no_mapping_are_refused(library: Path) -> None:
    """A list of names has no types."""
    with pytest.raises(TypeError, match=r"functions: expected a mapping of .*, found \['add'\]"):
        runtime.load(library, functions=["add"])  # type: ignore[arg-type]


def test_handles_of_functions_that_are_declared_later(library: Path) -> None:
    """They belong to the file, not to the small library of each declaration."""
    whole = {"declaration": "box *(double value)", "free": "box_free"}
    m = runtime.load(library, functions={"box_new": whole, "box_free": "void(box *b)"})
    box = m["box_new"](2.5)
    del m
    assert runtime.load(library, functions={"box_get": "double(box *b)"})["box_get"](box) == 2.5
    gc.collect()
    box.close()
    assert box.closed


def test_handles_have_the_lifetime_that_is_declared(library: Path) -> None:
    """Options are as in packer.FunctionDeclaration; a type that is unknown is a handle."""
    m = runtime.load(
        library,
        functions={
            "box": {"declaration": "box *(double value)", "symbol": "box_new", "free": "box_free"},
            "box_get": "double(const box *b)",
            "box_free": "void(box *b)",
        },
    )
    assert m["box_get"](m["box"](2.5)) == 2.5
    assert m.function_names() == ["box", "box_free", "box_get"]


def test_text_is_released_by_a_function_of_the_library(library: Path) -> None:
    """It need not be declared."""
    text_new = {"declaration": "char *(void)", "free": "text_free"}
    m = runtime.load(library, functions={"text_new": text_new, "count_texts": "int(void)"})
    assert (m["text_new"](), m["count_texts"]()) == ("", 0)


def test_later_loads_see_the_functions(library: Path) -> None:
    """While the module is in use; a declaration is not compiled twice, another one replaces it."""
    m = runtime.load(library, functions=ADD)
    add = m["add"]
    assert runtime.load(library) is m
    assert runtime.load(library)["add"](1, 2) == 3
    runtime.load(library, functions=ADD)
    assert m["add"] is add or m["add"](1, 2) == 3
    runtime.load(library, functions={"add": "int64_t(int64_t first, int64_t second)"})
    assert m["add"].signature == "int64_t add(int64_t first, int64_t second)"


def test_a_function_keeps_the_library_open(library: Path) -> None:
    """The last of them closes both libraries, and no file remains."""
    gc.collect()
    before = Path("/proc/self/maps").read_text().count("packer-")  # bridges of other tests
    add = runtime.load(library, functions=ADD)["add"]
    gc.collect()
    assert add(40, 2) == 42
    assert str(library) in Path("/proc/self/maps").read_text()
    del add
    gc.collect()
    maps = Path("/proc/self/maps").read_text()
    assert str(library) not in maps
    assert maps.count("packer-") <= before


def test_a_replaced_file_is_another_library(library: Path, tmp_path: Path) -> None:
    """Functions call the file that they were declared for, even if another has its path."""
    old = runtime.load(library, functions=ADD)["add"]
    compile_c("long add(long a, long b) { return a * b; }", tmp_path / "new.so")
    (tmp_path / "new.so").rename(library)
    new = runtime.load(library, functions=ADD)["add"]
    assert (old(3, 4), new(3, 4)) == (7, 12)


@pytest.mark.parametrize("name", ["ad", "version", "malloc"])
def test_a_missing_function_is_named(library: Path, name: str) -> None:
    """Neither data nor a function of a dependency is one of the file; nothing is declared."""
    with pytest.raises(runtime.FunctionNotFoundError, match=f"found '{name}'") as caught:
        runtime.load(library, functions={**ADD, name: "int(int a)"})
    assert ("near names: 'add'" in str(caught.value)) == (name == "ad")
    assert "add" not in runtime.load(library).function_names()


@pytest.mark.parametrize("given", ["cdecl", 5, {"declared": "int()"}, "int add(int a)", ""])
def test_a_wrong_declaration_is_refused(library: Path, given: object) -> None:
    """The message names the file and the function."""
    with pytest.raises(runtime.ExportError, match=r"others\.so: functions: function 'add'"):
        runtime.load(library, functions={"add": given})


def test_without_a_compiler(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setenv("PATH", "/nowhere")
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(runtime.ToolchainError, match="no compiler.*; install"):
        runtime.load(library, functions=ADD)


def test_without_packer(library: Path) -> None:
    """Where packer cannot be imported, the error says what to install."""
    code = (
        "import json, runtime, sys\n"
        "try: runtime.load(sys.argv[1], functions={'add': 'long(long a, long b)'})\n"
        "except runtime.PackerError as error: print(json.dumps(str(error)))"
    )
    assert "pip install dso-packer" in run_python(code, str(library), blocked=("packer",))


def test_own_declarations_take_precedence(tmp_path: Path) -> None:
    """A library that packer made needs no compiler."""
    import packer

    host = packer.CSourceModule("long add(long a, long b) { return a + b; }", functions=ADD)
    path = packer.export_library(host, tmp_path / "own.so")
    m = runtime.load(path, functions={"add": "int(int a)"})
    assert m["add"].signature == "long add(long a, long b)"


def test_the_advice_of_a_failed_look_up_works(library: Path) -> None:
    """Its declaration, with the type of the function."""
    m = runtime.load(library)
    with pytest.raises(runtime.FunctionNotFoundError) as caught:
        m["add"]
    advice = f"runtime.load({str(library)!r}, functions={{'add': 'int(int)'}})"
    assert advice in str(caught.value)
    assert runtime.load(library, functions=ADD)["add"](1, 2) == 3
