"""Host code that looks up and calls what its library imports."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runtime
from runtime._core import Library

from ..compile import INCLUDE, compile_c
from ..process import run_python

HOST = Path(__file__).with_name("host.c")


class Functions(runtime.Module):
    """A module of Python functions that counts how often it is asked."""

    type_key = "functions"

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.functions = functions
        self.asked: list[str] = []

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """One of the functions that it was made of."""
        self.asked.append(name)
        return self.functions.get(name)

    def function_names(self) -> list[str]:
        """Their names."""
        return list(self.functions)


@pytest.fixture
def host_path(compile_library, tmp_path) -> Path:
    """A copy of the compiled host.c: a library of its own for each test."""
    path = tmp_path / "host.so"
    path.write_bytes(compile_library(HOST.read_text()).read_bytes())
    return path


@pytest.fixture
def host(host_path) -> runtime.Module:
    """The library, loaded."""
    return runtime.load(host_path)


def importing(host: runtime.Module, **functions: Callable[..., Any]) -> Functions:
    """Let the library import a module of these functions."""
    module = Functions(**functions)
    host.import_module(module)
    return module


# ---- Whom a look-up asks


def test_host_code_calls_a_function_of_an_import(host) -> None:
    """Arguments go there, the result comes back."""
    importing(host, scale=lambda x, factor: x * factor)
    assert host["call"]("scale", 21, 2) == 42


def test_imports_are_asked_depth_first_in_import_order(host) -> None:
    """The first import's imports come before the second import."""
    first, second = Functions(), Functions(f=lambda: "second")
    first.import_module(Functions(f=lambda: "below first"))
    host.import_module(first)
    host.import_module(second)
    assert host["call"]("f") == "below first"


def test_library_itself_is_not_asked(host) -> None:
    """A function of the library's own is called in C, not by name."""
    with pytest.raises(runtime.FunctionNotFoundError):
        host["call"]("add", 1, 2)


def test_global_functions_come_last(host, register_func) -> None:
    """What no import has is the global function; an import's own comes first."""
    register_func("test.context.f", lambda: "global")
    assert host["call"]("test.context.f") == "global"
    importing(host, **{"test.context.f": lambda: "import"})
    assert host["call"]("test.context.f") == "import"


def test_unknown_name_is_refused_with_near_ones(host) -> None:
    """The error names the function, the library and what is like it."""
    importing(host, scale=abs)
    with pytest.raises(runtime.FunctionNotFoundError) as caught:
        host["call"]("scaled")
    assert "calls 'scaled', which is no function of its imports" in str(caught.value)
    assert "host.so" in str(caught.value) and "near names: 'scale'" in str(caught.value)
    assert caught.value.name == "scaled"


def test_name_that_is_not_utf8_is_an_error(host) -> None:
    """It is no crash, and no name of a function."""
    with pytest.raises(UnicodeDecodeError):
        host["call_bad_name"]()


def test_null_name_and_null_function_are_errors(host) -> None:
    """NULL where a name or a function is expected is said, not followed."""
    with pytest.raises(TypeError, match="look-up: expected a name, found NULL"):
        host["find_null"]()
    with pytest.raises(TypeError, match="call: expected a function, found NULL"):
        host["call_null"]()


# ---- Values


def test_call_without_arguments_and_none_as_result(host) -> None:
    """The macro takes no arguments, too."""
    importing(host, none=lambda *args: args or None)
    assert host["call_none"]() is None


def test_each_kind_of_argument_arrives(host) -> None:
    """What dso_packer.h makes of C values is what Python sees."""
    seen: list[Any] = []

    def look(*args: Any) -> None:
        seen.extend([*args[:-1], bytes(memoryview(args[-1]).cast("B"))])

    importing(host, all=look)
    host["call_all"]()
    assert seen == [None, -5, True, 0.5, "text", runtime.Device("cpu:2"), b"abc"]


def test_result_that_nobody_wants_is_released(host) -> None:
    """A long string and a callable are objects: dropping them leaves nothing."""

    class Result:
        def __call__(self) -> None: ...

    gone: list[weakref.ref[Result]] = []

    def drop(_number: int) -> Result:
        result = Result()
        gone.append(weakref.ref(result))
        return result

    importing(host, drop=drop)
    host["call_and_drop"]()
    assert gone[0]() is None


def test_exception_of_an_import_passes_through_host_code_as_itself(host) -> None:
    """The very object arrives, with the traceback of where it was raised."""
    error = KeyError("mine")

    def fail() -> None:
        raise error

    importing(host, fail=fail)
    with pytest.raises(KeyError) as caught:
        host["call"]("fail")
    assert caught.value is error


# ---- What is remembered, and for how long


def test_name_is_looked_up_once(host) -> None:
    """From then on no module is asked."""
    module = importing(host, f=lambda: 1)
    for _ in range(5):
        host["call"]("f")
    assert module.asked == ["f"]


def test_later_import_is_seen(host) -> None:
    """import_module and clear_imports count for names that were looked up before."""
    importing(host, f=lambda: "first")
    assert host["call"]("f") == "first"
    host.clear_imports()
    with pytest.raises(runtime.FunctionNotFoundError):
        host["call"]("f")
    importing(host, f=lambda: "second")
    assert host["call"]("f") == "second"


def test_change_further_down_the_tree_is_seen(host) -> None:
    """An import of an import counts as well."""
    middle = importing(host)
    middle.import_module(Functions(f=lambda: "first"))
    assert host["call"]("f") == "first"
    middle.clear_imports()
    middle.import_module(Functions(f=lambda: "second"))
    assert host["call"]("f") == "second"


def test_replaced_global_function_is_seen(host, register_func) -> None:
    """register_func(override=True) counts for names that were looked up before."""
    register_func("test.context.g", lambda: "first")
    assert host["call"]("test.context.g") == "first"
    register_func("test.context.g", lambda: "second")
    assert host["call"]("test.context.g") == "second"


def test_change_elsewhere_keeps_what_was_found(host) -> None:
    """After a change of another tree the same function object serves; nothing piles up."""

    def function() -> int:
        return 1

    module = importing(host, f=function)
    references = sys.getrefcount(function)
    for _ in range(3):
        assert host["call"]("f") == 1
        Functions().import_module(Functions())
    assert module.asked == ["f"] * 3
    assert sys.getrefcount(function) == references + 1


def test_function_that_code_remembers_outlives_its_import(host) -> None:
    """Code that TVM makes keeps borrowed functions: they stay until the library is closed."""
    module = importing(host, f=lambda: "still there")
    host["remember"]("f")
    host.clear_imports()
    del module
    gc.collect()
    assert host["call_remembered"]() == "still there"


def test_library_is_closed_with_its_last_reference(host_path) -> None:
    """Row G12: what host code found keeps the import alive, and nothing keeps the library."""
    host = runtime.load(host_path)
    module = importing(host, f=lambda: 1)
    host["call"]("f")
    gone, imported_gone = weakref.ref(host), weakref.ref(module)
    del host, module
    assert gone() is None
    assert imported_gone() is None
    assert not is_mapped(host_path)


def test_function_keeps_library_and_imports(host_path) -> None:
    """Row G12: a function that outlives the module calls on."""
    call = _call_of(host_path)
    gc.collect()
    assert call("f") == 1
    del call
    assert not is_mapped(host_path)


def _call_of(path: Path) -> Callable[..., Any]:
    host = runtime.load(path)
    importing(host, f=lambda: 1)
    return host["call"]


def test_import_that_leads_back_is_collected(host_path) -> None:
    """A cycle through Python, over what host code found, goes with the garbage collector."""
    host = runtime.load(host_path)
    add = host["add"]
    importing(host, twice=lambda x, add=add: add(x, x))
    assert host["call"]("twice", 21) == 42
    gone = weakref.ref(host)
    del add
    del host
    gc.collect()
    assert gone() is None
    assert not is_mapped(host_path)


def is_mapped(path: Path) -> bool:
    """Whether the process still has the file in memory."""
    return str(path) in Path("/proc/self/maps").read_text()


class Viewing(Functions):
    """A module that keeps a view of the library that it came with."""

    def __init__(self, view: memoryview, **functions: Callable[..., Any]) -> None:
        super().__init__(**functions)
        self.view = view


def test_module_that_views_the_library_does_not_keep_it_open(compile_library) -> None:
    """Modules of a library's own blob do: dropping the last reference closes it, at once."""
    path = compile_library(
        HOST.read_text() + 'DSO_EXPORT const char some_data[] = "data of the library";\n'
    )
    host = runtime.load(path)
    assert isinstance(host, runtime.LibraryModule)
    view = host._library.data("some_data")
    assert view is not None
    module = Viewing(view)
    module.functions["f"] = lambda module=module: bytes(module.view)[:4]
    host.import_module(module)
    assert host["call"]("f") == b"data"
    gc.disable()
    try:
        module.functions.clear()
        del host, module, view
        assert not is_mapped(path)
    finally:
        gc.enable()


def test_function_over_weights_does_not_keep_the_library_open(compile_library) -> None:
    """What is remembered may view the library through a tensor, which the collector cannot see."""
    path = compile_library(
        HOST.read_text() + 'DSO_EXPORT const char weights[] = "1234567 weights";\n'
    )
    host = runtime.load(path)
    assert isinstance(host, runtime.LibraryModule)
    weights = host._library.data("weights")
    assert weights is not None
    tensor = runtime.Tensor(weights, (16,), (1, 8, 1))
    module = importing(host, f=lambda tensor=tensor: tensor.nbytes)
    host["remember"]("f")
    assert host["call_remembered"]() == 16
    gc.disable()
    try:
        del host, module, weights, tensor
        assert not is_mapped(path)
    finally:
        gc.enable()


def test_two_libraries_over_one_image_share_a_context(host_path) -> None:
    """The module that came first is asked first; what code remembers outlives it."""
    first, second = (runtime.LibraryModule(Library(str(host_path))) for _ in range(2))
    importing(first, f=lambda: "first")
    importing(second, f=lambda: "second", g=lambda: "second")
    assert second["call"]("f") == "first"
    second["remember"]("f")
    del first
    assert second["call_remembered"]() == "first"
    assert second["call"]("g") == "second"


def test_library_that_is_never_unmapped_keeps_what_it_found(compile_library) -> None:
    """Row G14: opened anew, the image is the old one; what it remembers is looked up anew."""
    path = compile_library(HOST.read_text(), "-Wl,-z,nodelete")
    host = runtime.load(path)
    importing(host, f=lambda: "remembered", g=lambda: "old")
    host["remember"]("f")
    host["call"]("g")
    del host
    gc.collect()
    host = runtime.load(path)
    with pytest.raises(runtime.FunctionNotFoundError, match="'f'"):
        host["call_remembered"]()
    importing(host, f=lambda: "anew", g=lambda: "new")
    assert host["call_remembered"]() == "anew"
    assert host["call"]("g") == "new"


RETIRED = """
import gc, json, sys
import runtime
class Functions(runtime.Module):
    def find_function(self, name):
        return (lambda: 7) if name == "answer" else None
runtime.register_func("answer")(lambda: 42)
provider = runtime.load(sys.argv[2]) if len(sys.argv) > 2 else Functions()
host = runtime.load(sys.argv[1])
host.import_module(provider)
host["remember"]("answer")
sys.setswitchinterval(1000)
host["begin"]()
del host
gc.collect()
sys.setswitchinterval(0.005)
host = runtime.load(sys.argv[1])
print(json.dumps(host["finish"]()))
"""


@pytest.mark.parametrize("provider", ["python", "library"])
def test_call_that_waits_for_the_gil_while_its_module_goes(
    provider, compile_library, host_path
) -> None:
    """Row G14: what it was to call is gone when it gets there; it is looked up anew."""
    path = compile_library(HOST.read_text(), "-Wl,-z,nodelete")
    others = [str(host_path)] if provider == "library" else []
    assert run_python(RETIRED, str(path), *others, timeout=30) == 42


def test_context_without_module_has_the_global_functions(host_path, register_func) -> None:
    """A bare library has no imports; the error says that there is nobody to ask."""
    library = Library(str(host_path))
    call = library.function("call", None)
    assert call is not None
    register_func("test.context.h", lambda: "global")
    assert call("test.context.h") == "global"
    with pytest.raises(runtime.FunctionNotFoundError):
        call("f")


# ---- Contexts that are none


@pytest.mark.parametrize("pointer", [0, 1, 8, 0x5EAF00D, 2**47 - 8])
def test_pointer_that_is_no_context_is_never_followed(host, pointer) -> None:
    """Whatever a library hands in is only compared."""
    found = "NULL" if pointer == 0 else "one that nobody here made"
    with pytest.raises(RuntimeError, match=f"look-up of 'f': the library's context.*{found}"):
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


def test_pointer_that_is_no_context_is_not_given_to_a_real_tvm_ffi(host_path) -> None:
    """It would follow it; only what is a module of its own gets there."""
    messages = run_python(BESIDE_TVM_FFI, str(host_path))
    assert len(messages) == 5
    assert all("one that nobody here made" in message for message in messages)


def test_context_of_a_closed_library_is_none(host, host_path, tmp_path) -> None:
    """A pointer that was a context is refused once its library is closed."""
    other_path = tmp_path / "other.so"
    other_path.write_bytes(host_path.read_bytes())
    other = runtime.load(other_path)
    pointer = other["context"]()
    importing(other, f=lambda: 1)
    host["find_with"](pointer, "f")
    del other
    with pytest.raises(RuntimeError, match="one that nobody here made"):
        host["find_with"](pointer, "f")


def test_object_that_is_no_function_is_not_called(host) -> None:
    """A handle to something else is a TypeError."""
    importing(host, long=lambda: "a string that is long enough to be an object")
    with pytest.raises(TypeError, match="expected a function, found another object"):
        host["call_result"]("long")


def test_library_that_dlopen_opened_says_who_has_to_load_it(host_path, tmp_path) -> None:
    """Nobody filled its context symbols: a call fails, and does not crash."""
    code = (
        "import ctypes, json, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "print(json.dumps(library.__tvm_ffi_call_none(None, None, 0, None)))\n"
    )
    assert run_python(code, str(host_path)) == -1


# ---- Threads, forks, the end


def test_call_by_name_takes_no_python(host, host_path, tmp_path) -> None:
    """A thread of C calls an imported C function while another one has the GIL all the time."""
    other_path = tmp_path / "other.so"
    other_path.write_bytes(host_path.read_bytes())
    host.import_module(runtime.load(other_path))
    host["find"]("add")
    assert host["call_in_thread"]("add") == 42


def test_threads_look_up_at_once(host) -> None:
    """Row G11: one name from many threads, while imports change elsewhere and here."""
    importing(host, **{f"f{i}": (lambda i=i: i) for i in range(40)})
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(400):
                assert host["call"](f"f{i % 40}") == i % 40
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        host.import_module(Functions())
    for thread in threads:
        thread.join()
    assert failures == []


def test_load_call_unload_in_threads(host_path) -> None:
    """Row G11: libraries come and go while others call; a context is never mistaken."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(40):
                host = runtime.LibraryModule(Library(str(host_path)))
                importing(host, f=lambda: number)
                assert host["call"]("f") in range(6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_look_up_works_on_both_sides_of_a_fork(host) -> None:
    """Row G9: names found before and after, in parent and child."""
    importing(host, f=lambda: 1, g=lambda: 2)
    assert host["call"]("f") == 1
    child = os.fork()
    if child == 0:
        os._exit(10 * host["call"]("f") + host["call"]("g"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
    assert (host["call"]("f"), host["call"]("g")) == (1, 2)


FORK_BESIDE_DLOPEN = """
import ctypes, os, signal, sys, time
from pathlib import Path
import runtime
host = runtime.load(sys.argv[1])
try:
    host["call"]("missing")
except AttributeError:
    pass
ctypes.CDLL(sys.argv[2]).open_in_a_thread(os.fsencode(sys.argv[3]))
while sys.argv[3] not in Path("/proc/self/maps").read_text():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(60)
    try:
        host["call"]("missing")
    except AttributeError:
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.stdout.flush()
os._exit(0)
"""

OPENS = """
#include <dlfcn.h>
#include <pthread.h>
static char path[4096];
static void *open_it(void *unused) { dlopen(path, RTLD_NOW); return unused; }
int open_in_a_thread(const char *name) {
  for (int i = 0; (path[i] = name[i]) != 0; i++) {}
  pthread_t thread;
  return pthread_create(&thread, 0, open_it, 0);
}
"""


def test_error_in_a_child_forked_beside_another_dlopen(host_path: Path, tmp_path: Path) -> None:
    """Row G9: what somebody else's thread (PoCL's, say) has half loaded does not end the child.

    That dlopen is held up, deterministically, by a needed library which is a pipe without a writer.
    """
    needed = compile_c("int needed;", tmp_path / "needed.so", f"-Wl,-soname,{tmp_path}/needed.so")
    half = compile_c("int half;", tmp_path / "half.so", "-Wl,--no-as-needed", str(needed))
    needed.unlink()
    os.mkfifo(needed)
    opens = compile_c(OPENS, tmp_path / "opens.so", "-pthread")
    assert run_python(FORK_BESIDE_DLOPEN, str(host_path), str(opens), str(half)) == 7


EXIT = """
import json, sys, threading, time, atexit
import runtime
host = runtime.load(sys.argv[1])
class M(runtime.Module):
    def find_function(self, name):
        return (lambda: 1) if name.startswith("f") else None
host.import_module(M())
call = host["call"]
def loop():
    i = 0
    while True:
        call(f"f{i % 7}")
        i += 1
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
class Last:
    def __del__(self, call=call):
        call("f0")
last = Last()
last.me = last
keep = sys.modules
time.sleep(0.05)
print(json.dumps(call("f1")))
"""


def test_process_ends_while_threads_look_up(host_path) -> None:
    """Row G13: daemon threads are in look-ups when the interpreter goes, and so is a __del__."""
    for _ in range(3):
        assert run_python(EXIT, str(host_path)) == 1


# ---- __TVMFFIHandleInitOnce


def test_handle_is_made_once(host) -> None:
    """Threads that come at once wait for the one that makes it."""
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(host["init_once"](0))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 8


def test_init_that_fails_or_makes_nothing_is_an_error(host) -> None:
    """Its own error passes; no handle without one is an error too; the next call tries again."""
    for _ in range(2):
        with pytest.raises(RuntimeError, match="init: gave no handle"):
            host["init_once"](1)
        with pytest.raises(KeyError, match="init"):
            host["init_once"](2)


# ---- The header, and what the core exports


@pytest.mark.parametrize("compiler", [("cc", "-xc", "-std=c99"), ("c++", "-xc++", "-std=c++11")])
def test_header_is_plain_c_and_cplusplus(compiler, tmp_path) -> None:
    """No warning of the strictest kind, in C99 and C++11."""
    text = (
        '#include "dso_packer.h"\n'
        "int f(DLTensor *x, dso_any *result);\n"
        "int f(DLTensor *x, dso_any *result) {\n"
        '  if (dso_call("none", NULL)) return -1;\n'
        '  return dso_call("f", result, dso_tensor(x), dso_float(2.0), dso_int(1));\n'
        "}\n"
    )
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only")
    command = [*compiler, *warnings, f"-I{INCLUDE}", "-"]
    subprocess.run(command, input=text, text=True, check=True)


def test_several_files_of_a_library_include_the_header(compile_library, compile_object) -> None:
    """Each defines the context symbols weakly, and the library has one of each."""
    other = compile_object(
        '#include "dso_packer.h"\n'
        'int other(void); int other(void) { return dso_call("f", NULL); }\n'
    )
    path = compile_library(HOST.read_text(), str(other))
    host = runtime.load(path)
    importing(host, f=lambda: 1)
    assert host["call"]("f") == 1


EXPORTED = """
PyInit__core
TVMAPISetLastError TVMBackendAllocWorkspace TVMBackendFreeWorkspace TVMBackendGetFuncFromEnv
TVMBackendParallelBarrier TVMBackendParallelLaunch TVMBackendRegisterSystemLibSymbol
TVMFFIEnvModLookupFromImports TVMFFIEnvModRegisterSystemLibSymbol
TVMFFIErrorSetRaisedFromCStr TVMFFIErrorSetRaisedFromCStrParts TVMFFIFunctionCall
TVMFFIHandleInitOnce TVMFuncCall TVMGetLastError
"""


def test_core_exports_what_it_provides_and_no_more() -> None:
    """Its dynamic symbols are this list."""
    path = runtime._core.__file__
    nm = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", path],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[0] for line in nm.stdout.splitlines()}
    assert names == set(EXPORTED.split())
