"""Which C functions can be called by name: declared ones, or TVM's."""

from __future__ import annotations

import gc
import platform
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from ...support.importing import importing
from ...support.paths import C_SOURCES, DATA

LIBRARIES = DATA / "libraries_0_1_0"

SCALE = "void scale(float *x, long n, double f) { for (long i = 0; i < n; i++) x[i] *= f; }\n"
PACKED = """
#include <stdint.h>
#define PACKED(name) \\
  int name(int64_t *args, int *codes, int n, int64_t *ret, int *code, void *resource)
PACKED(twice) {
  *ret = 2 * args[0];
  *code = 0;
  return 0;
}
PACKED(thrice) {
  *ret = 3 * args[0];
  *code = 0;
  return 0;
}
"""
UNDECLARED = "has a C function 'scale' without a declaration: export it with --function"


def copy(path: Path, folder: Path) -> Path:
    """A separate file: a module that another test holds is a different one."""
    return Path(shutil.copy(path, folder / "copy.so"))


# ---- Functions without a declaration


def test_function_of_a_plain_library_is_not_called(compile_library) -> None:
    """Its type is unknown: the error explains how to declare it."""
    module = runtime.load(compile_library(SCALE))
    with pytest.raises(runtime.FunctionNotFoundError, match=UNDECLARED) as caught:
        module["scale"](np.ones(4, "float32"), 4, 2.0)
    load = f"runtime.load({module.path!r}, functions={{'scale': 'packed'}})"
    assert str(caught.value).endswith(f"if it is a packed C function, use {load}")
    assert "scale" not in module and not module.implements_function("scale")


@pytest.mark.parametrize("with_import", [False, True])
def test_function_that_an_export_did_not_declare_is_not_called(with_import, tmp_path) -> None:
    """The error is the same with a blob and without, and for host code of another library."""
    source = packer.CSourceModule(SCALE)
    if with_import:
        source.import_module(runtime.DeviceModule("cuda", b"code", "cubin", []))
    module = runtime.load(packer.export_library(source, tmp_path / "a.so"))
    with pytest.raises(runtime.FunctionNotFoundError, match=UNDECLARED):
        module["scale"]


def test_host_code_does_not_call_it_either(compile_library) -> None:
    """The error of a look-up by name ends with the same advice."""
    host = runtime.load(compile_library((C_SOURCES / "host.c").read_text() + "/*declared*/"))
    host.import_module(runtime.load(compile_library(SCALE)))
    with pytest.raises(runtime.FunctionNotFoundError, match=UNDECLARED):
        host["call"]("scale")


def test_raising_alone_is_not_a_mark_of_tvm(compile_library) -> None:
    """C code with dso_abi.h has TVM FFI's pointer for errors, as packer's wrappers have."""
    source = '#include "dso_abi.h"\n' + SCALE
    source += "void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);\n"
    source += 'int fail(void) { return dso_raise("ValueError", "no"); }\n'
    assert "scale" not in runtime.load(compile_library(source))


def test_data_is_not_offered_as_a_function(compile_library) -> None:
    """The advice is given only for code."""
    module = runtime.load(compile_library("int number = 1;"))
    with pytest.raises(runtime.FunctionNotFoundError) as caught:
        module["number"]
    assert "declaration" not in str(caught.value)


@pytest.mark.parametrize(
    "mark",
    [
        "void *__tvm_module_ctx;",
        "int (*__TVMFuncCall)(void);",
        "int __tvm_ffi_other(void) { return 0; }",
        '__attribute__((visibility("default"))) const char __tvm_main__[] = "twice";',
        "extern int TVMBackendFreeWorkspace(void);\n"
        "int free_it(void) { return TVMBackendFreeWorkspace(); }",
    ],
)
def test_function_of_a_library_of_tvm_is_packed(mark, compile_library) -> None:
    """A symbol of TVM's shows that TVM made the file."""
    assert runtime.load(compile_library(PACKED + mark))["twice"](21) == 42


def test_mark_of_packer_outweighs_those_of_tvm(compile_library) -> None:
    """The mark of packer declares all functions that can be called."""
    marks = 'void *__tvm_module_ctx;\nconst char __packer_fn_f[] = "packer-function 1\\n";\n'
    module = runtime.load(compile_library(PACKED + marks))
    with pytest.raises(runtime.FunctionNotFoundError, match="'twice' without a declaration"):
        module["twice"]


# ---- The advice, followed


def test_advice_of_a_look_up_leads_to_a_call(tmp_path) -> None:
    """The commands of the message, for a function of the type that it names."""
    (tmp_path / "a.c").write_text("int twice(int x) { return 2 * x; }\n")
    command = ["cc", "-shared", "-fPIC", "a.c", "-o", "a.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(runtime.FunctionNotFoundError) as caught:
        runtime.load(tmp_path / "a.so")["twice"]
    text = str(caught.value)
    option = text.partition("--function '")[2].partition("'")[0]
    export = [sys.executable, "-m", "packer", "export", "b.so", "a.c", "--function", option]
    subprocess.run(export, cwd=tmp_path, check=True, capture_output=True)
    assert runtime.load(tmp_path / "b.so")["twice"](21) == 42
    load = text.partition("or load it with ")[2].partition(", if it is int twice(int)")[0]
    assert eval(load, {"runtime": runtime})["twice"](21) == 42


def test_load_declares_a_packed_function(compile_library, tmp_path) -> None:
    """functions={"twice": "packed"}: the function can be called and is listed; no other can."""
    path = copy(compile_library(PACKED), tmp_path)
    module = runtime.load(path, functions={"twice": "packed"})
    assert module["twice"](21) == 42
    assert module.function_names() == ["twice"]
    assert "thrice" not in module


def test_later_load_declares_more_functions_of_the_same_module(compile_library, tmp_path) -> None:
    """One file is one Module: its declarations add up, also where a look-up failed before."""
    path = copy(compile_library(PACKED), tmp_path)
    module = runtime.load(path)
    root = runtime.Module()
    root.import_module(module)
    assert "twice" not in module and "twice" not in root
    assert runtime.load(path, functions={"twice": "packed"}) is module
    assert module["twice"](21) == root["twice"](21) == 42
    assert runtime.load(path, functions={"thrice": "packed", "twice": "packed"}) is module
    assert [module["twice"](1), module["thrice"](1)] == [2, 3]
    assert runtime.load(path) is module and "thrice" in module


def test_declarations_go_with_the_module(compile_library, tmp_path) -> None:
    """A library that was closed and loaded again has no declarations."""
    path = copy(compile_library(PACKED), tmp_path)
    module = runtime.load(path, functions={"twice": "packed"})
    function, gone = module["twice"], weakref.ref(module)
    del module
    assert function(21) == 42
    del function
    gc.collect()
    assert gone() is None
    assert "twice" not in runtime.load(path)


def test_own_declaration_of_the_library_stays(tmp_path) -> None:
    """A safe-call function is called as such, whatever the load declares."""
    source = packer.CSourceModule(SCALE, functions={"scale": "void(float *x, long n, double f)"})
    path = packer.export_library(source, tmp_path / "scale.so")
    array = np.ones(4, "float32")
    runtime.load(path, functions={"scale": "packed"})["scale"](array, 4, 2.0)
    assert array.tolist() == [2] * 4


@pytest.mark.parametrize("name", ["twic", "strlen", "data", "zwölf", "a\0b", "\ud800", ""])
def test_declared_function_must_exist(name, compile_library, tmp_path) -> None:
    """The error names the function and similar names; then none is declared."""
    path = copy(compile_library(PACKED + "int data;"), tmp_path)
    module = runtime.load(path)
    with pytest.raises(runtime.FunctionNotFoundError, match="functions: expected a function of"):
        runtime.load(path, functions={"twice": "packed", name: "packed"})
    assert "twice" not in module


@pytest.mark.parametrize("kind", ["safe_call", "", None, 1])
def test_other_declarations_are_refused(kind, compile_library) -> None:
    """A value is "packed" or a C type."""
    with pytest.raises(runtime.ExportError, match="functions: function 'twice': "):
        runtime.load(compile_library(PACKED), functions={"twice": kind})


def test_standalone_file_has_no_functions_to_declare(tmp_path) -> None:
    """A file of weights or device code is not a library."""
    (tmp_path / "kernel.cl").write_text("kernel void f() {}")
    with pytest.raises(ValueError, match="functions: expected a library, found a standalone file"):
        runtime.load(tmp_path / "kernel.cl", functions={"f": "packed"})


def test_declared_function_is_an_import_of_host_code(compile_library, tmp_path) -> None:
    """Host code of another library finds the function by name, also after a refusal."""
    host = runtime.load(compile_library((C_SOURCES / "host.c").read_text() + "/*again*/"))
    importing(host)
    path = copy(compile_library(PACKED), tmp_path)
    host.import_module(runtime.load(path))
    with pytest.raises(runtime.FunctionNotFoundError):
        host["call"]("twice", 21)
    runtime.load(path, functions={"twice": "packed"})
    assert host["call"]("twice", 21) == 42


# ---- Libraries of 0.1.0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only on hardware with x86-64")
class TestLibraries010:
    """Libraries that dso-packer 0.1.0 exported load and run."""

    def test_packed_function(self, tmp_path) -> None:
        """The declared function can be called, the other one cannot."""
        module = runtime.load(copy(LIBRARIES / "packed.so", tmp_path))
        assert module["twice"](21) == 42
        assert module.function_names() == ["twice"]
        assert "helper" not in module

    @pytest.mark.parametrize("name", ["scale", "scale_tvm_ffi"])
    def test_safe_call_and_blob(self, name, tmp_path) -> None:
        """Such libraries of both dialects load."""
        module = runtime.load(copy(LIBRARIES / f"{name}.so", tmp_path))
        array = np.ones(4, "float32")
        module["scale"](array, 4, 2.0)
        assert array.tolist() == [2] * 4
        (imported,) = module.imported_modules
        assert isinstance(imported, runtime.DeviceModule)
        assert (imported.fmt, bytes(imported.data)) == ("cubin", b"device code")

    def test_undeclared_function(self, tmp_path) -> None:
        """Version 0.1.0 called it as a packed C function, and crashed."""
        module = runtime.load(copy(LIBRARIES / "undeclared.so", tmp_path))
        with pytest.raises(runtime.FunctionNotFoundError, match=UNDECLARED):
            module["scale"](np.ones(4, "float32"), 4, 2.0)


def test_a_function_that_an_export_did_not_read_gets_no_invented_type(tmp_path: Path) -> None:
    """The library does not have its type; the message says what prints it."""
    code = "int add(int a) { return a; }\nint alloc(int n, ...) { return n; }\n"
    source = packer.CSourceModule(code, functions={"add": "auto"})
    module = runtime.load(packer.export_library(source, tmp_path / "a.so"))
    text = "has a C function 'alloc' without a declaration: export it with --function"
    text += " 'alloc=<its C type>', or load it with runtime.load"
    with pytest.raises(runtime.FunctionNotFoundError, match=text) as caught:
        module["alloc"]
    assert "an export prints why it leaves a function out, with" in str(caught.value)
    assert "int(int)" not in str(caught.value)
