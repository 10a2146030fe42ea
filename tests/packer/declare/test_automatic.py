"""functions="auto": the functions of a source, and the reasons of those left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime
from packer.modules.c_source import CSourceModule
from runtime.error import ExportError, ToolchainError

from ...support import needs
from ..read_source import compile_errors, read

C = """
#include "dso_packer.h"
#include <stdio.h>
typedef struct list list;
static int hidden(void) { return 1; }
inline int quick(void) { return 1; }
int64_t add(int64_t a, int64_t b) { return a + b + hidden(); }
__attribute__((noinline)) double half(double x) { return x / 2; }
int list_open(const char *name, list **made) { return !name || !made; }
int say(const char *format, ...) { return !format; }
int32_t fused(void *args, int32_t *arg_type_ids, int32_t num_args, void *out_ret_value,
              int32_t *out_ret_tcode, void *resource_handle) { return 0; }
dso_status check(DLTensor *x) { return x ? 0 : -1; }
void *memset(void *p, int c, size_t n) { (void)c, (void)n; return p; }
enum kind { A, B } kind(enum kind k) { return k; }
int main(void) { return 0; }
const char *names[] = { "a", "b" };
struct s { int (*f)(int); } table = { 0 };
"""
CPP = """
#include <vector>
#include <cstdint>
struct point { double x, y; };
template <class T> T twice(T x) { return x + x; }
extern "C" int64_t add(int64_t a, int64_t b) { return a + b; }
namespace own { extern "C" double half(double x) { return x / 2; } }
extern "C" {
double area(const point *p) { return p->x; }
int count(std::vector<int> &v) { return (int)v.size(); }
}
int plain(int x) { return x; }
extern "C" auto arrow(int x) -> int { return x; }
extern "C" constexpr int four(int x) { return 4 * x; }
class A { public: int f() { return 1; } };
"""


def test_the_functions_of_c_are_found(tmp_path: Path) -> None:
    """Functions of external linkage, packed ones and functions that can fail."""
    module = CSourceModule(C, functions="auto")
    found = {d.name: d for d in module.functions}
    names = [name for name in found if not name.startswith("_packer_")]
    assert names == ["add", "half", "list_open", "fused", "check", "kind"]
    assert found["add"].text == "int64_t(int64_t a, int64_t b)"
    assert (found["list_open"].out, found["fused"].abi) == (("made",), "packed_c")
    assert found["check"].result == "status"
    assert list(module.left_out) == ["say", "memset"]
    assert "a variable number of arguments" in module.left_out["say"]
    assert "the name is reserved" in module.left_out["memset"]
    assert compile_errors(module, tmp_path, "-fno-builtin") == ""


def test_one_function_of_a_source_is_read(tmp_path: Path) -> None:
    """By its name and "auto", also with options; packed functions are recognised."""
    functions = {"list_open": "auto", "half": {"declaration": "auto", "doc": "H."}, "fused": "auto"}
    module = CSourceModule(C, functions=functions)
    opened, half, fused = module.functions
    assert (opened.out, half.doc, fused.abi) == (("made",), "H.", "packed_c")
    assert (module.is_read, module.left_out) == (True, {})
    assert compile_errors(module, tmp_path, "-fno-builtin") == ""
    with pytest.raises(ExportError, match="function 'nonesuch': the source does not declare"):
        CSourceModule(C, functions={"nonesuch": "auto"})


def test_only_extern_c_functions_of_cpp_are_found(tmp_path: Path) -> None:
    """Others are listed with the words that are missing."""
    module = CSourceModule(CPP, fmt="cc", functions="auto")
    assert [d.name for d in module.functions] == ["add", "half", "area"]
    assert module.functions[2].parameters[0].code == "&{point}"
    assert module.left_out["plain"] == 'extern "C" is missing: write extern "C" int plain(int x)'
    assert set(module.left_out) == {"count", "plain", "arrow"}
    assert compile_errors(module, tmp_path) == ""


def test_a_source_that_cannot_be_preprocessed_is_refused() -> None:
    """The error is the compiler's."""
    with pytest.raises(ToolchainError, match=r"preprocessing: .*nonesuch\.h"):
        CSourceModule('#include "nonesuch.h"\n', functions="auto")


def test_old_style_definitions_are_listed(tmp_path: Path) -> None:
    """They are left out with the reason, and the functions after them are found."""
    code = """
    int old(a, b) int a; char *b; { int x(int); if (a) return x(a); return !b; }
    static int own(a) int a; { return a; }
    int longer(a)
      const char *a;
    { return !a; }
    int add(int a, int b) { return a + b; }
    int @(int a) { return a; }
    """
    module = CSourceModule(code.replace("@", "odd(int)"), functions="auto")
    assert [d.name for d in module.functions] == ["add"]
    assert list(module.left_out) == ["old", "longer", "odd"]
    reason = "an old-style definition, expected types inside the parentheses"
    assert module.left_out["old"] == f"{reason}, as in 'int old(int a)'; rewrite it so"


def test_host_functions_of_cuda_are_found() -> None:
    """Kernels and device functions are not functions of the library."""
    needs.program("nvcc")
    code = """
    __global__ void fill(float *x) { *x = 1; }
    extern "C" __global__ void fill_c(float *x) { *x = 1; }
    __device__ float half(float x) { return x / 2; }
    extern "C" __host__ __device__ int both(int a) { return a; }
    extern "C" int add(int a, int b) { fill<<<1, 1>>>(nullptr); return a + b; }
    int plain(int a) { return a; }
    """
    module = CSourceModule(code, fmt="cu", functions="auto")
    assert [d.name for d in module.functions] == ["both", "add"]
    assert list(module.left_out) == ["plain"]


@pytest.mark.parametrize(
    "code", ["", "int f(", "}}}}", "int f(void) {", '"', "int f;;;(", "{" * 99]
)
def test_damaged_text_has_no_functions(code: str) -> None:
    """Text that is not C is left to the compiler."""
    assert read(f"{code}\n") == {}


def test_types_of_cpp_are_named() -> None:
    """Functions with such types are left out with the reason, not skipped."""
    code = """namespace kit { struct Bag { int n; }; }
    extern "C" {
    int count(const kit::Bag *bag) { return bag->n; }
    int size(kit::Bag &bag) { return bag.n; }
    auto half(double x) -> double { return x / 2; }
    int one(void) { return 1; }
    }"""
    module = CSourceModule(code, fmt="cc", functions="auto")
    assert [d.name for d in module.functions] == ["one"]
    assert list(module.left_out) == ["count", "size", "half"]
    assert all(text.startswith("its type is of C++, ") for text in module.left_out.values())


def test_the_others_are_found_beside_changes(tmp_path: Path) -> None:
    """A change gives options alone, a declaration, or leaves a function out."""
    code = """
#include <stdlib.h>
typedef struct box { int n; } box;
box *box_new(int n) { box *b = malloc(sizeof *b); b->n = n; return b; }
void box_free(box *b) { free(b); }
int box_get(box *b) { return b->n; }
int gone(int a) { return a; }
"""
    changes = {"*": "auto", "box_new": {"free": "box_free"}, "gone": False}
    module = packer.CSourceModule(code, functions=changes)
    loaded = runtime.load(packer.export_library(module, tmp_path / "box.so"))
    assert loaded.function_names() == ["box_free", "box_get", "box_new"]
    with loaded["box_new"](7) as box:
        assert loaded["box_get"](box) == 7
    assert box.closed


def test_a_warning_of_the_preprocessor_comes_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The compiler shows it; reading the declarations does not."""
    code = "#warning only here\ntypedef int own; own one(own a) { return a; }\n"
    packer.export_library(packer.CSourceModule(code, functions="auto"), tmp_path / "w.so")
    assert capfd.readouterr().err.count("warning: #warning") == 1


def test_functions_with_another_symbol_or_another_way_to_call_are_left_out(tmp_path: Path) -> None:
    """They cost no other function: the glue would call a symbol that nothing defines."""
    code = (
        'int f(int a) __asm__("other"); int f(int a) { return a; }\n'
        'int g(int a) __asm__("g"); int g(int a) { return a; }\n'
        "__attribute__((ms_abi)) int h(int a) { return a; }\n"
        'int k(int a) __attribute__((alias("g")));\n'
    )
    module = CSourceModule(code, functions="auto")
    assert module.left_out["f"] == "its symbol is 'other', expected 'f'; declare it without __asm__"
    assert module.left_out["h"] == "cannot be read as C: the attribute ms_abi"
    made = runtime.load(packer.export_library(module, tmp_path / "a.so"))
    assert made["g"](3) == made["k"](3) == 3
