"""Invalid context pointers, contexts of closed libraries, and objects that are not functions."""

from __future__ import annotations

import pytest

import runtime
from runtime._core import Library

from ...support.importing import importing
from ...support.process import run_python


def test_context_without_module_has_the_global_functions(host_path, register_func) -> None:
    """A bare library has no imports; the error says that no module is available."""
    library = Library(str(host_path))
    call = library.function("call", None)
    assert call is not None
    register_func("test.context.h", lambda: "global")
    assert call("test.context.h") == "global"
    with pytest.raises(runtime.FunctionNotFoundError):
        call("f")


@pytest.mark.parametrize("pointer", [0, 1, 8, 0x5EAF00D, 2**47 - 8])
def test_pointer_that_is_not_a_context_is_never_followed(host, pointer) -> None:
    """The pointer that a library passes is only compared."""
    found = "NULL" if pointer == 0 else "an unknown pointer"
    with pytest.raises(RuntimeError, match=f"look-up of 'f': library context.*{found}"):
        host["find_with"](pointer, "f")


BESIDE_TVM_FFI = """
import json, sys, tvm_ffi, runtime
host = runtime.load(sys.argv[1])
messages = []
for pointer in (1, 8, 2**47 - 8, id(host), id(tvm_ffi)):
    try:
        host["find_with"](pointer, "f")
    except RuntimeError as error:
        messages.append(str(error))
print(json.dumps(messages))
"""


def test_pointer_that_is_not_a_context_is_not_given_to_a_real_tvm_ffi(host_path) -> None:
    """tvm_ffi would follow the pointer; it receives only modules of its kind."""
    messages = run_python(BESIDE_TVM_FFI, str(host_path))
    assert len(messages) == 5
    assert all("an unknown pointer" in message for message in messages)


def test_context_of_a_closed_library_is_none(host, host_path, tmp_path) -> None:
    """A pointer that was a context is refused once its library is closed."""
    other_path = tmp_path / "other.so"
    other_path.write_bytes(host_path.read_bytes())
    other = runtime.load(other_path)
    pointer = other["context"]()
    importing(other, f=lambda: 1)
    host["find_with"](pointer, "f")
    del other
    with pytest.raises(RuntimeError, match="an unknown pointer"):
        host["find_with"](pointer, "f")


def test_object_that_is_not_a_function_is_not_called(host) -> None:
    """A handle that is not a function is a TypeError."""
    importing(host, long=lambda: "a string that is long enough to be an object")
    with pytest.raises(TypeError, match="expected a function, found another object"):
        host["call_result"]("long")


def test_library_that_dlopen_opened_names_the_required_loader(host_path, tmp_path) -> None:
    """A library without filled context symbols fails at a call, and does not crash."""
    code = (
        "import ctypes, json, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "print(json.dumps(library.__tvm_ffi_call_none(None, None, 0, None)))\n"
    )
    assert run_python(code, str(host_path)) == -1


def test_call_by_name_takes_no_python(host, host_path, tmp_path) -> None:
    """A thread of C calls an imported C function while another one has the GIL all the time."""
    other_path = tmp_path / "other.so"
    other_path.write_bytes(host_path.read_bytes())
    host.import_module(runtime.load(other_path))
    host["find"]("add")
    assert host["call_in_thread"]("add") == 42
