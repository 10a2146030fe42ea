"""The glue of a library: its text, its symbols, its names."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from packer.declare.c_type import parse_functions
from packer.declare.facts import dump_facts
from packer.declare.glue import Glue
from packer.dialect import Naming

from ...support.every_code import DECLARATIONS
from ...support.wrapped_library import (
    FUNCTIONS,
    NONE,
    WARNINGS,
    Any16,
    Library,
    build,
    gcc,
    glue_source,
    integer,
    parse,
    tensor,
)


def test_the_glue_text_is_the_same_every_time() -> None:
    """The glue depends only on the declarations."""
    functions = {"f": "void(int a)", "g": "const char *(DLTensor *t)"}
    texts = {glue_source(parse_functions(functions, module="c"), "f") for _ in range(3)}
    assert len(texts) == 1


def test_the_glue_without_functions_compiles(tmp_path: Path) -> None:
    """A library without declared functions still has the context pointer."""
    (tmp_path / "glue.c").write_text(glue_source(()))
    assert gcc("-shared", tmp_path / "glue.c", *WARNINGS, "-o", tmp_path / "lib.so").stderr == ""
    names = subprocess.check_output(["nm", "-D", tmp_path / "lib.so"], text=True)
    assert " B __TVMFFIErrorSetRaisedFromCStr\n" in names


def test_the_glue_is_cpp_too(tmp_path: Path) -> None:
    """The very text compiles as C++17 without a warning."""
    (tmp_path / "glue.cc").write_text(glue_source(parse_functions(FUNCTIONS, module="c"), "index"))
    made = gcc("-std=c++17", "-c", tmp_path / "glue.cc", *WARNINGS, "-o", tmp_path / "glue.o")
    assert made.returncode == 0, made.stderr
    assert made.stderr == ""


def test_the_symbols_of_a_library(product: Path) -> None:
    """Wrappers, metadata and entry are exported; private symbols of the glue are not."""
    names = subprocess.check_output(["nm", "-D", "--defined-only", product], text=True).split()[
        2::3
    ]
    for name in FUNCTIONS:
        assert {name, f"__tvm_ffi_{name}", f"__packer_fn_{name}"} <= set(names)
    assert {"__tvm_ffi_main", "__tvm_main__", "__TVMFFIErrorSetRaisedFromCStr"} <= set(names)
    assert not [name for name in names if name.startswith("dso_")]


def test_metadata_in_the_library_is_the_text_and_a_nul(product: Path) -> None:
    """Quotes, trigraphs and UTF-8 survive; the symbol's size counts the NUL."""
    lines = subprocess.check_output(
        ["readelf", "--dyn-syms", "-W", product], text=True
    ).splitlines()
    (size,) = [int(line.split()[2]) for line in lines if line.endswith(" __packer_fn_index")]
    text = (ctypes.c_char * size).in_dll(ctypes.CDLL(str(product)), "__packer_fn_index").raw
    assert text == dump_facts(parse(FUNCTIONS["index"])).encode() + b"\0"
    assert text.endswith('doc Says "n"??/\n\xe9\\\n\0'.encode())


def test_names_of_libc_are_the_librarys_own(library: Library) -> None:
    """gamma, index and read are not libm's and libc's."""
    assert library.call("gamma", integer(1)).v_int64 == 2
    assert library.call("index", tensor(), integer(5)).v_int64 == 5
    assert library.call("read", integer(1)).v_int64 == 4


def test_the_entry_is_the_function_it_names(library: Library) -> None:
    """__tvm_ffi_main behaves as the wrapper; __tvm_main__ holds the name."""
    assert library.call("main", NONE, integer(5)).v_int64 == -5
    assert "index: expected 2 arguments, found 0" in library.refusal("main")[1]
    assert (ctypes.c_char * 6).in_dll(library.dll, "__tvm_main__").raw == b"index\0"


def test_a_dotted_name_of_llvm_is_wrapped(tmp_path: Path) -> None:
    """Names with "." and "$" are symbols, if not C names."""
    declarations = parse_functions({"a.b$c": "long(long n)", "rax": "long()"}, module="llvm")
    (tmp_path / "glue.c").write_text(glue_source(declarations))
    (tmp_path / "user.c").write_text(
        'long f(long n) __asm__("a.b$c"); long f(long n) { return n + 1; } long rax() { return 7; }'
    )
    output = tmp_path / "lib.so"
    made = gcc("-shared", tmp_path / "glue.c", tmp_path / "user.c", "-o", output)
    assert made.returncode == 0, made.stderr
    library = Library(output)
    assert library.call("a.b$c", integer(1)).v_int64 == 2
    assert library.call("rax").v_int64 == 7


def test_main_may_be_the_entry(tmp_path: Path) -> None:
    """The wrapper of a function named main is the entry itself."""
    path = build(tmp_path, "int main(void) { return 5; }", {"main": "int()"}, entry="main")
    assert Library(path).call("main").v_int64 == 5


def test_an_error_without_a_loader_is_a_plain_failure(tmp_path: Path) -> None:
    """Without a loader, a wrapper returns -1 and does not crash."""
    path = build(tmp_path, "void f(void) {}", {"f": "void()"})
    function = ctypes.CDLL(str(path))["__tvm_ffi_f"]
    assert function(None, None, 1, ctypes.byref(Any16())) == -1


def test_the_glue_of_a_system_library_registers_its_context(tmp_path: Path) -> None:
    """The variables through which it looks up ffi.Array are defined once, and registered."""
    naming = Naming("tvm-ffi", system_lib=True, prefix="net1_")
    (tmp_path / "glue.c").write_text(Glue(DECLARATIONS, None, naming, "i8").source("checksums"))
    made = gcc("-c", tmp_path / "glue.c", *WARNINGS, "-o", tmp_path / "glue.o")
    assert (made.returncode, made.stderr) == (0, "")
    lines = subprocess.check_output(["nm", tmp_path / "glue.o"], text=True).splitlines()
    for name in ("__TVMFFIEnvModLookupFromImports", "__tvm_ffi__library_ctx"):
        (line,) = (line for line in lines if line.endswith(f" {name}"))
        assert line.split()[1] == "V"
        assert f'dso_add("net1_{name}", ' in (tmp_path / "glue.c").read_text()


def test_the_glue_includes_only_what_it_needs() -> None:
    """A small export does not compile arrays and callbacks."""
    numbers = glue_source([parse("int(int a, double b)")])
    assert [line for line in numbers.splitlines() if line.startswith("#include")] == [
        f'#include "{name}.h"' for name in ("dso_abi", "glue", "glue_give", "glue_take")
    ]
    assert '#include "glue_callback.h"' in glue_source(DECLARATIONS)
