"""Packed C functions: from Python, from host code, and their errors."""

from __future__ import annotations

import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from ...support.importing import Functions, importing
from ...support.paths import C_SOURCES

SOURCE = C_SOURCES / "packed.c"


class Watched(np.ndarray):  # type: ignore[type-arg]
    """An array that weak references may point to, and finalizers."""


# TVMArgTypeCode
INT, FLOAT, HANDLE, NULL, DEVICE, TENSOR, OBJECT, MODULE = 0, 2, 3, 4, 6, 7, 8, 9
FUNCTION, STR, BYTES = 10, 11, 12


@pytest.fixture
def library(compile_library, tmp_path) -> runtime.Module:
    """The compiled packed.c, as a compiler other than packer made it: a copy for each test."""
    path = tmp_path / "packed.so"
    path.write_bytes(compile_library(SOURCE.read_text()).read_bytes())
    return runtime.load(path)


# ---- From Python


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (7, INT),
        (True, INT),
        (0.5, FLOAT),
        (None, NULL),
        ("text", STR),
        (b"bytes", BYTES),
        (np.ones(2), TENSOR),
        (len, FUNCTION),
        (Functions(), MODULE),
    ],
)
def test_argument_has_its_type_code(library, value, code) -> None:
    """Python's values have the codes of TVM's c_runtime_api.h."""
    assert library["code"](value) == code


@pytest.mark.parametrize(
    "value", [0, -(2**63), 0.5, None, "text", "a text of many bytes", b"bytes", b"a\0b" * 9]
)
def test_value_is_returned(library, value) -> None:
    """Python gets the value that a packed function returns; strings are copied."""
    assert library["echo"](value) == value


def test_any_number_of_arguments(library) -> None:
    """Arguments are passed on the stack and beyond it."""
    for count in (0, 1, 16, 17, 400):
        assert library["count"](*range(count)) == count
        assert library["sum"](*range(count)) == sum(range(count))


def test_result_is_preset_to_none(library) -> None:
    """A function need not set its result; resource_handle is NULL."""
    assert library["nothing"]() is None
    assert library["preset"]() == NULL + 100


def test_array_is_changed_in_place(library) -> None:
    """An array is passed as a DLTensor pointer, as in a safe call."""
    array = np.arange(4, dtype="float32")
    library["scale"](array, 2.0)
    np.testing.assert_array_equal(array, [0, 2, 4, 6])


def test_bytes_have_their_length(library) -> None:
    """Bytes are passed as a TVMByteArray; a NUL is a byte like others."""
    assert library["nbytes"](b"a\0b") == 3


def test_string_result_is_copied(library) -> None:
    """A string may be in memory that the next call writes."""
    first = library["greet"]("a")
    assert (library["greet"]("b"), first) == ("hello b", "hello a")


@pytest.mark.parametrize("code", [-1, 14, 15, 99])
def test_unknown_type_code_of_a_result_is_refused(library, code) -> None:
    """The error has the code; nothing is read through the value."""
    with pytest.raises(TypeError, match=f"result: type code, expected 0 to 13, found {code}"):
        library["echo_as"](1, code)


def test_packed_function_keeps_its_library(compile_library, tmp_path) -> None:
    """A packed function keeps its library, as every function does, also when C code passes it."""
    path = tmp_path / "own.so"
    path.write_bytes(compile_library(SOURCE.read_text()).read_bytes())
    sum_of = runtime.load(path)["sum"]
    assert sum_of(40, 2) == 42
    assert str(path) in Path("/proc/self/maps").read_text()
    del sum_of
    assert str(path) not in Path("/proc/self/maps").read_text()


# ---- Errors


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("ValueError: too large", ValueError, "too large"),
        ("KeyError: 'x'", KeyError, "'x'"),
        ("TVMError: internal", RuntimeError, "TVMError: internal"),
        ("no kind in front", RuntimeError, "no kind in front"),
        ("Exceptions: none of Python's", RuntimeError, "Exceptions: none of Python's"),
        ("SystemExit: 3", RuntimeError, "SystemExit: 3"),
        (": nothing", RuntimeError, ": nothing"),
        ("expected 3: found 4", RuntimeError, "expected 3: found 4"),
        ("x" * 100 + ": long", RuntimeError, "x" * 100 + ": long"),
        ("", RuntimeError, ""),
        ("ValueError: żółw", ValueError, "żółw"),
    ],
)
def test_last_error_is_the_exception(library, text, error, message) -> None:
    """A kind at the start of the message is the exception's class, as in TVM."""
    with pytest.raises(error) as caught:
        library["fail"](text)
    assert type(caught.value) is error
    assert caught.value.args == (message,)


def test_failure_without_text_is_an_error(library) -> None:
    """The text of the error is NULL, or was never set."""
    with pytest.raises(RuntimeError):
        library["fail_null"]()
    with pytest.raises(RuntimeError, match="fail_silently: returned -3 without raising"):
        library["fail_silently"]()


# ---- From host code


def test_host_code_calls_an_import(library) -> None:
    """Arguments and results of all kinds, in TVM's former calling convention."""
    seen: list[Any] = []
    importing(library, f=lambda *args: seen.append(args))
    library["call"]("f", 1, 0.5, None, "text", b"bytes", len)
    assert seen == [(1, 0.5, None, "text", b"bytes", len)]


@pytest.mark.parametrize("value", [7, True, 0.5, None])
def test_result_of_an_import_is_returned(library, value) -> None:
    """The call passes through __TVMFuncCall and the packed function."""
    importing(library, f=lambda: value)
    assert library["call"]("f") == value


@pytest.mark.parametrize("value", ["", "abc", "a text of many bytes", b"", b"abc", b"a\0b" * 9])
def test_string_of_an_import_lives_until_the_next_call(library, value) -> None:
    """The thread owns the string, and frees it at its end or at the next result."""
    importing(library, f=lambda: value)
    assert library["call"]("f") == value
    lengths: list[int] = []
    thread = threading.Thread(target=lambda: lengths.append(library["call_for_length"]("f")))
    thread.start()
    thread.join()
    assert lengths == [len(value)]


def test_value_that_a_thread_kept_may_call_back_when_the_thread_ends(library) -> None:
    """Each result is released once, also the one that the release of another made."""
    arrays = [np.ones(2).view(Watched), np.ones(3).view(Watched)]
    gone = [weakref.ref(array) for array in arrays]
    importing(library, f=arrays.pop)
    weakref.finalize(arrays[-1], library["call_for_length"], "f").atexit = False
    thread = threading.Thread(target=library["call_for_length"], args=("f",))
    thread.start()
    thread.join()
    until = time.monotonic() + 10  # the system's thread ends after Python's
    while any(reference() is not None for reference in gone) and time.monotonic() < until:
        time.sleep(0.001)
    assert [reference() for reference in gone] == [None, None]


def test_array_of_an_import_is_a_tensor(library) -> None:
    """The code of a tensor is that of a DLTensor pointer."""
    importing(library, f=lambda: np.ones(3))
    assert library["call_for_length"]("f") == -TENSOR


def test_functions_of_both_dialects_call_each_other(library, compile_library) -> None:
    """A packed function calls a safe one, and vice versa; a handle is the same in both."""
    host = runtime.load(compile_library((C_SOURCES / "host.c").read_text() + "/**/"))
    library.import_module(host)
    assert library["call"]("add", 40, 2) == 42
    assert library["apply"](host["add"], 40, 2) == 42
    other = Functions(sum=library["sum"])
    host.import_module(other)
    assert host["call"]("sum", 1, 2, 3) == 6


def test_many_arguments_from_host_code(library) -> None:
    """More arguments are passed than fit the stack."""
    importing(library, f=lambda *args: len(args))
    assert library["call"]("f", *range(100)) == 100


@pytest.mark.parametrize(
    ("value", "code", "seen"),
    [(5, 0, 5), (-1, 1, 2**64 - 1), (0, 4, None), (0, 8, None), (0, 10, None)],
)
def test_type_codes_from_host_code(library, value, code, seen) -> None:
    """An unsigned int is one; a NULL object becomes None."""
    got: list[Any] = []
    importing(library, f=lambda given: got.append(given))
    library["call_as"]("f", value, code)
    assert got == [seen]


@pytest.mark.parametrize("code", [-1, 14, 2**31 - 1])
def test_unknown_type_code_of_an_argument_is_refused(library, code) -> None:
    """The error names the argument and the code."""
    importing(library, f=lambda *args: args)
    with pytest.raises(TypeError, match=f"argument 1: type code, expected 0 to 13, found {code}"):
        library["call_as"]("f", 1, code)


def test_null_function_is_refused(library) -> None:
    """The handle is one that was never looked up."""
    with pytest.raises(TypeError, match="call: expected a function, found NULL"):
        library["call_null"]()


def test_exception_passes_through_packed_code_as_itself(library) -> None:
    """The same object is raised; meanwhile TVMGetLastError returns its text."""
    error = ValueError("mine")

    def fail() -> None:
        raise error

    importing(library, f=fail)
    with pytest.raises(ValueError, match="mine") as caught:
        library["call"]("f")
    assert caught.value is error
    assert library["error_of"]("f") == "ValueError: mine"


# ---- Which names are packed functions


def test_safe_call_of_the_same_name_is_first(compile_library) -> None:
    """Functions are found in the order of TVM."""
    path = compile_library(
        '#include "dso_packer.h"\n'
        "int f(void *a, int *c, int n, int64_t *ret, int *code, void *r) { *ret = 1; *code = 0;"
        " return 0; }\n"
        "DSO_EXPORT int __tvm_ffi_f(void *h, const dso_any *a, int32_t n, dso_any *result) {"
        " *result = dso_int(2); return 0; }\n"
    )
    assert runtime.load(path)["f"]() == 2


def test_data_and_undefined_symbols_are_not_functions(library) -> None:
    """Only code of this file can be called."""
    for name in ("data_symbol", "strlen", "__TVMFuncCall"):
        assert not library.implements_function(name)


PACKED_SOURCE = """
#include <stdint.h>
int helper(void *a, int *c, int n, int64_t *ret, int *code, void *r) { return 0; }
int twice(int64_t *args, int *codes, int n, int64_t *ret, int *code, void *resource) {
  *ret = 2 * args[0];
  *code = 0;
  return 0;
}
"""


def test_named_functions_of_a_source_are_packed(tmp_path) -> None:
    """CSourceModule(functions=[...]): a function without a name in the list cannot be called."""
    source = packer.CSourceModule(PACKED_SOURCE, functions=["twice"])
    module = runtime.load(packer.export_library(source, tmp_path / "twice.so"))
    assert module["twice"](21) == 42
    assert module.function_names() == ["twice"]
    assert not module.implements_function("helper")


def test_packed_entry_is_called_by_the_module(tmp_path) -> None:
    """entry= names the function that a call of the module runs."""
    source = packer.CSourceModule(PACKED_SOURCE, functions=["twice"])
    module = runtime.load(packer.export_library(source, tmp_path / "e.so", entry="twice"))
    assert module(21) == 42


def metadata(text: str) -> str:
    """A library whose only function has this metadata."""
    return (
        f'const char __packer_fn_f[] = "packer-function 1\\n{text}";\n'
        "#ifdef DEFINED\n"
        "int f(void *a, int *c, int n, void *ret, int *code, void *r) { return 0; }\n"
        "#endif\n"
    )


def test_metadata_of_a_packed_function_needs_its_symbol(compile_library) -> None:
    """A library whose metadata names a missing symbol is malformed."""
    module = runtime.load(compile_library(metadata("abi packed_c\\n")))
    with pytest.raises(runtime.LibraryLoadError, match="__packer_fn_f: declares a packed C"):
        module.get_function("f")


def test_metadata_decides_about_the_abi(compile_library) -> None:
    """A safe call without its symbol is not a packed function; an unknown ABI is refused."""
    module = runtime.load(compile_library(metadata("abi safe_call\\n"), "-DDEFINED"))
    assert not module.implements_function("f")
    module = runtime.load(compile_library(metadata("abi fastcall\\n"), "-DDEFINED"))
    with pytest.raises(runtime.LibraryLoadError, match="abi, expected safe_call or packed_c"):
        module.get_function("f")
    module = runtime.load(
        compile_library(metadata("abi packed_c\\ngil keep\\ndoc Text\\n"), "-DDEFINED")
    )
    function = module.get_function("f")
    assert (function(), function.__doc__) == (None, "Text")
