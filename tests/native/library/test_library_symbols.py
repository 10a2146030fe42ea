"""Symbols of a library: constants, functions, metadata, context symbols."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runtime._core import Library
from runtime.error import LibraryLoadError

from ..plain_library import ADD, SYMBOLS, CompileLibrary, answer

NAMED = "default, expected a parameter's name"
STRUCT = "struct, expected 'name size alignment field:code@offset ...'"


def test_symbols_of_a_dependency_are_not_the_librarys(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """Blob and functions are looked up in this object only, where dlsym would search further."""
    inner = compile_library(ADD, "-DANSWER=1", "-Wl,-soname,libinner.so")
    shutil.copy(inner, tmp_path / "libinner.so")
    link = (str(tmp_path / "libinner.so"), "-Wl,--no-as-needed", f"-Wl,-rpath,{tmp_path}")
    without = Library(str(compile_library("int own;", *link)))
    assert (without.data("blob"), without.function("answer", None)) == (None, None)
    with_own = Library(str(compile_library(ADD, "-DANSWER=2", *link)))
    assert answer(with_own) == 2
    assert answer(Library(str(tmp_path / "libinner.so"))) == 1


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("writable", "is in a writable segment, expected a read-only one"),
        ("zeros", "is not stored in the file"),
        ("local", "is not plain data"),
        ("function", "is a function, expected data"),
        ("nothing", "has size 0"),
        ("absolute", "is an absolute value, expected data"),
    ],
)
def test_symbol_that_is_not_constant_data(
    compile_library: CompileLibrary, symbol: str, expected: str
) -> None:
    """A blob outside the file-backed, read-only part is refused by name."""
    library = Library(str(compile_library(SYMBOLS)))
    with pytest.raises(LibraryLoadError, match=f": {symbol} at 0x[0-9a-f]+: {expected}") as caught:
        library.data(symbol)
    assert caught.value.reason == "blob"


def test_symbol_that_is_not_a_function(compile_library: CompileLibrary) -> None:
    """Data under a function's name is not called."""
    library = Library(str(compile_library("const char __tvm_ffi_f[8] = {1}; char __tvm_ffi_g;")))
    for name in "fg":
        with pytest.raises(LibraryLoadError, match=f"__tvm_ffi_{name} at 0x.*function") as caught:
            library.function(name, None)
        assert caught.value.reason == "malformed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "first line, expected 'packer-function 1'"),
        ("packer-function 2\\n", "first line, expected 'packer-function 1'"),
        ("packer-function 1\\ngil perhaps\\n", "gil, expected release or keep"),
        ("packer-function 1\\ntype void\\n", "type, expected a C declaration"),
        ("packer-function 1\\nparams x\\n", "params, expected name:code"),
        ("packer-function 1\\nparams :i8\\n", "params, expected name:code"),
        ("packer-function 1\\nparams x:i8  y:i8\\n", "params, expected name:code"),
        ("packer-function 1\\nparams x:i8\\nparams x:i8\\n", "params given twice"),
        ("packer-function 1\\nparams x:i8 \\n", "params, expected name:code"),
        ("packer-function 1\\nparams x:i8 y:i8 x:i8\\n", "params, expected different names"),
        ("packer-function 1\\nparams x:\\n", "params, expected name:code"),
        ("packer-function 1\\nout x\\n", "out, expected name:code"),
        ("packer-function 1\\nout \\n", "out, expected name:code"),
        ("packer-function 1\\nout x:f64\\nout y:f64\\n", "out given twice"),
        ("packer-function 1\\nresult \\n", "result, expected a code"),
        ("packer-function 1\\nresult i32 i32\\n", "result, expected a code"),
        ("packer-function 1\\nfree two words\\n", "free, expected a name"),
        ("packer-function 1\\nlifetime \\n", "lifetime, expected a name"),
        ("packer-function 1\\nlifetime x\\n", "lifetime, expected a parameter's name"),
        ("packer-function 1\\nparams x:i8\\ndefault x\\n", "default, expected a name and a value"),
        (
            "packer-function 1\\nparams x:i8\\ndefault y 1\\n",
            "default, expected a parameter's name",
        ),
        (
            "packer-function 1\\nparams x:i8\\ndefault x 1\\ndefault x 2\\n",
            "default given twice",
        ),
        ("packer-function 1\\nstruct s 8\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 x\\n", STRUCT),
        ("packer-function 1\\nstruct  8 8\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 8 x\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 8 x:f64\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 8 x:@foo\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 8 x:f64@\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 8 x:f64@0x\\n", STRUCT),
        ("packer-function 1\\nstruct s 8 8 :f64@0\\n", STRUCT),
        ("packer-function 1\\nstruct s 9999999999 8 x:f64@0\\n", STRUCT),
        ("packer-function 1\\ndoc \\xff\\n", "expected UTF-8 text"),
        ("packer-function 1\\n\\0doc\\n", "expected text that ends with its only NUL"),
    ],
)
def test_malformed_metadata_is_refused(
    compile_library: CompileLibrary, text: str, expected: str
) -> None:
    """A function with unreadable metadata is not called."""
    source = f'int __tvm_ffi_f(void) {{ return 0; }} const char __packer_fn_f[] = "{text}";'
    library = Library(str(compile_library(source)))
    with pytest.raises(LibraryLoadError, match=f": __packer_fn_f: {expected}$") as caught:
        library.function("f", None)
    assert caught.value.reason == "malformed"


def test_metadata_without_nul_or_in_writable_memory(compile_library: CompileLibrary) -> None:
    """The text ends within its symbol, in memory that cannot be written."""
    source = "int __tvm_ffi_f(void) { return 0; } int __tvm_ffi_g(void) { return 0; }"
    source += 'const char __packer_fn_f[3] = "pac"; char __packer_fn_g[] = "packer-function 1\\n";'
    library = Library(str(compile_library(source)))
    with pytest.raises(LibraryLoadError, match="__packer_fn_f: expected text that ends with its"):
        library.function("f", None)
    with pytest.raises(LibraryLoadError, match=r"__packer_fn_g at 0x.* writable segment"):
        library.function("g", None)


@pytest.mark.parametrize(
    ("declared", "signature"),
    [
        ("void(void)", "void f(void)"),
        ("const char *(int x)", "const char *f(int x)"),
        ("(void)", " f(void)"),
    ],
)
def test_signature_has_the_name_in_its_place(
    compile_library: CompileLibrary, declared: str, signature: str
) -> None:
    """The signature reads as C."""
    source = "int __tvm_ffi_f(void) { return 0; }"
    source += f'const char __packer_fn_f[] = "packer-function 1\\ntype {declared}\\n";'
    function = Library(str(compile_library(source))).function("f", None)
    assert function is not None
    assert function.signature == signature


CONTEXT = """
#include "dso_packer.h"
static void other(const char *kind, const char *message) { (void)kind, (void)message; }
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *) = VALUE;
DSO_EXPORT int __tvm_ffi_f(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)args, (void)n, (void)other;
  result->type_index = DSO_INT;
  result->v_int64 = __TVMFFIErrorSetRaisedFromCStr != 0;
  if (__TVMFFIErrorSetRaisedFromCStr == other) result->v_int64 = 2;
  return 0;
}
"""


@pytest.mark.parametrize(("value", "found"), [("0", 1), ("other", 2)])
def test_context_symbol_is_filled_once(
    compile_library: CompileLibrary, value: str, found: int
) -> None:
    """The error setter is set only where none was set before."""
    library = Library(str(compile_library(CONTEXT, f"-DVALUE={value}")))
    function = library.function("f", None)
    assert function is not None
    assert function() == found


@pytest.mark.parametrize(
    "source",
    [
        "void *const __TVMFFIErrorSetRaisedFromCStr = 0;",
        "int __TVMFFIErrorSetRaisedFromCStr;",
        "void __TVMFFIErrorSetRaisedFromCStr(void) {}",
        "_Thread_local void *__TVMFFIErrorSetRaisedFromCStr;",
    ],
)
def test_context_symbol_that_is_not_a_variable_is_left(
    compile_library: CompileLibrary, source: str
) -> None:
    """Constants, small variables, functions and thread-local ones are not written to."""
    Library(str(compile_library(source + "int other_symbol;")))
