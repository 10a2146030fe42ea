"""Who lives how long: references after every kind of call, exit in any order, forks, rounds.

Each script of the last parts runs in a process of its own, where every warning is an error and
nothing may be written to standard error.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from runtime._core import Library, TensorBase

from ..process import run_python

HERE = Path(__file__).parent
STRESS = HERE.parent / "stress" / "load_rounds.py"
FLOAT32 = (2, 32, 1)


@pytest.fixture
def probe_file(compile_library: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of probe.c's library, of this test alone."""
    path = tmp_path / "probe.so"
    path.write_bytes(compile_library((HERE / "probe.c").read_text()).read_bytes())
    return path


@pytest.fixture
def functions_file(compile_library: Callable[..., Path], tmp_path: Path) -> Path:
    """The same of functions.c."""
    path = tmp_path / "functions.so"
    path.write_bytes(compile_library((HERE / "functions.c").read_text()).read_bytes())
    return path


def is_mapped(path: Path) -> bool:
    """Whether the file is part of this process."""
    return str(path) in Path("/proc/self/maps").read_text()


# ---- references


class _Refuses:
    """A producer that cannot be asked."""

    def __dlpack__(self, **_options: object) -> object:
        raise BufferError("not now")


def _raise(*_values: object) -> None:
    raise KeyError("from the callback")


# Each ends in its own place: before the call, in it, at its result.
OUTCOMES: dict[str, tuple[str, tuple[Any, ...], type[Exception] | None]] = {
    "int": ("add", (10**15, 10**16), None),
    "text": ("type_index", ("text" * 9,), None),
    "bytes": ("echo", (b"bytes" * 9,), None),
    "array": ("first", (np.ones(4, "f4"),), None),
    "strides": ("scale", (np.ones(8, "f4")[::2], 2.0), None),
    "buffer": ("ndim", (bytearray(16),), None),
    "tensor": ("first", (TensorBase(bytes(16), (4,), FLOAT32),), None),
    "heap result": ("object", (65, "a string on the heap", 1, 1), None),
    "many": ("sum", tuple(range(10**6, 10**6 + 40)), None),
    "unknown type": ("count", (np.ones(4, "f4"), "text" * 9, object()), TypeError),
    "unknown type of many": ("count", (bytearray(9), *"abc" * 9, object()), TypeError),
    "int too large": ("add", (bytearray(9), 2**70), OverflowError),
    "text with NUL": ("count", (bytearray(9), "a\0b"), ValueError),
    "text of surrogates": ("count", (bytearray(9), "\ud800"), ValueError),
    "read-only": ("scale", (memoryview(bytes(8)).cast("f"), 2.0), ValueError),
    "dlpack refused": ("count", (bytearray(9), _Refuses()), ValueError),
    "raised": ("fail", ("ValueError", "text" * 9), ValueError),
    "raised unknown": ("fail", ("NoSuchError", "text" * 9), RuntimeError),
    "silent": ("fail_silently", (bytearray(9),), RuntimeError),
    "result not text": ("not_utf8", (bytearray(9),), ValueError),
    "result unknown": ("object", (9999, "text", 1, 1), TypeError),
    "result NULL": ("of_type", (65,), ValueError),
}
CALLBACKS: dict[str, tuple[str, tuple[Any, ...], type[Exception] | None]] = {
    "answers": ("apply", (lambda value: value, "text" * 9), None),
    "raises": ("apply", (_raise, bytearray(9)), KeyError),
    "result unknown": ("apply", (lambda: object(),), TypeError),
    "result too large": ("apply", (lambda: 2**70,), OverflowError),
    "argument unknown": ("apply", (_raise, object()), TypeError),
    "in a thread": ("apply_in_thread", (lambda number: number, 3), None),
    "raises in a thread": ("apply_in_thread", (_raise, 3), RuntimeError),
}


def _leaves_nothing(path: Path, name: str, arguments: tuple[Any, ...], error: Any) -> None:
    """Call often: every count, and the number of all blocks, is what it was."""
    library, owner = Library(str(path)), object()
    function = library.function(name, owner)
    assert function is not None

    def rounds(count: int) -> None:
        for _ in range(count):
            try:
                function(*arguments)
            except Exception as caught:
                assert error is not None and isinstance(caught, error), caught
            else:
                assert error is None

    rounds(20)
    watched = [*arguments, owner, library, function]
    before = [sys.getrefcount(each) for each in watched]
    # The interpreter's own caches grow now and then; what leaks grows each time.
    assert min(_new_blocks(lambda: rounds(300)) for _ in range(4)) < 100
    assert [sys.getrefcount(each) for each in watched] == before


def _new_blocks(run: Callable[[], None]) -> int:
    gc.collect()
    blocks = sys.getallocatedblocks()
    run()
    gc.collect()
    return sys.getallocatedblocks() - blocks


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_call_leaves_no_reference(outcome: str, probe_file: Path) -> None:
    """Arguments, function, owner and library, after success and after each kind of failure."""
    _leaves_nothing(probe_file, *OUTCOMES[outcome])


@pytest.mark.parametrize("outcome", CALLBACKS)
def test_callback_leaves_no_reference(outcome: str, functions_file: Path) -> None:
    """The same with Python called from there."""
    _leaves_nothing(functions_file, *CALLBACKS[outcome])


def test_wrong_call_of_the_library_leaves_no_reference(probe_file: Path) -> None:
    """Look-ups that find nothing or are refused give back what they took."""
    library, owner, name = Library(str(probe_file)), object(), "no such function"
    before = [sys.getrefcount(each) for each in (library, owner, name)]
    for _ in range(50):
        assert library.function(name, owner) is None
        assert library.data(name) is None
        with pytest.raises(TypeError):
            library.function(owner, name)  # type: ignore[arg-type]
        with pytest.raises(runtime.LibraryLoadError):
            library.data("__tvm_ffi_add")
    assert [sys.getrefcount(each) for each in (library, owner, name)] == before


# ---- what outlives the module (G12)


def _facts(library: Library) -> memoryview:
    view = library.data("__packer_fn_add")
    assert view is not None
    return view


PARTS: dict[str, Callable[[Library], Any]] = {
    "function": lambda library: library.function("add", None),
    "view": _facts,
    "slice": lambda library: _facts(library)[3:9],
    "array": lambda library: np.frombuffer(_facts(library), "u1")[::2],
    "tensor": lambda library: TensorBase(_facts(library)[:4], (4,), (1, 8, 1)),
}


@pytest.mark.parametrize("part", PARTS)
def test_part_outlives_its_library(part: str, probe_file: Path) -> None:
    """G12: what came from a library keeps it open, and lets it go."""
    kept = PARTS[part](Library(str(probe_file)))
    gc.collect()
    assert is_mapped(probe_file)
    assert kept(40, 2) == 42 if part == "function" else bytes(memoryview(kept)[:2])
    del kept
    assert not is_mapped(probe_file)


def test_weak_reference_to_a_root_ends_with_it(probe_file: Path) -> None:
    """A module is weakly referenced by `load` alone; a look-up's cache holds no cycle for long."""
    module = runtime.load(probe_file)
    gone = weakref.ref(module)
    assert module["add"](40, 2) == 42
    assert runtime.load(probe_file) is module
    del module
    gc.collect()
    assert gone() is None
    assert not is_mapped(probe_file)


def test_cycle_through_a_callback_is_collected(functions_file: Path) -> None:
    """A callable that holds the function it is passed to does not keep the library for ever."""
    functions: list[Any] = []
    functions += [Library(str(functions_file)).function("apply", functions)]
    assert functions[0](lambda: len(functions)) == 1
    functions.clear()
    gc.collect()
    assert not is_mapped(functions_file)


# ---- the last reference goes during a call


def test_callback_drops_everything_that_it_can(functions_file: Path) -> None:
    """The code that is returned to is still there; after the call it is not."""
    held: dict[str, Any] = {"library": Library(str(functions_file))}
    held["apply"] = held["library"].function("apply", held["library"])

    def forget() -> bool:
        held.clear()
        gc.collect()
        return is_mapped(functions_file)

    assert held.pop("apply")(forget) is True
    assert not is_mapped(functions_file)


def test_failing_callback_drops_everything_that_it_can(functions_file: Path) -> None:
    """The error's message and traceback need nothing that is gone."""
    held: dict[str, Any] = {"library": Library(str(functions_file))}
    held["apply"] = held["library"].function("apply", held["library"])

    def forget() -> object:
        held.clear()
        gc.collect()
        return object()

    with pytest.raises(TypeError, match="found"):
        held.pop("apply")(forget)
    assert not is_mapped(functions_file)


def test_argument_that_unloads_when_it_is_released(functions_file: Path) -> None:
    """A producer's own code runs after the call, and may drop the library's last name."""
    held: dict[str, Any] = {"library": Library(str(functions_file))}
    held["type_index"] = held["library"].function("type_index", held["library"])

    class Drops:
        def __init__(self) -> None:
            self.data = np.ones(4, "f4")

        def __dlpack__(self, **options: Any) -> Any:
            held.clear()
            return self.data.__dlpack__(**options)

    assert held.pop("type_index")(Drops()) == 7
    assert not is_mapped(functions_file)


def test_destructor_that_raises_an_error_is_nobodys(
    compile_library: Callable[..., Path], tmp_path: Path
) -> None:
    """G13: what a library's destructor leaves in the error slot is not the next call's error."""
    raises = """
#include "dso_packer.h"
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
__attribute__((destructor)) static void leave(void) { dso_raise("KeyError", "too late"); }
DSO_EXPORT int __tvm_ffi_fail(void *h, const dso_any *a, int32_t n, dso_any *r) {
  (void)h, (void)a, (void)n, (void)r;
  return -1;
}
"""
    other = Library(str(compile_library(raises + "int other;"))).function("fail", None)
    path = tmp_path / "raises.so"
    path.write_bytes(compile_library(raises).read_bytes())
    library = Library(str(path))
    try:
        raise LookupError("pending")
    except LookupError:
        del library
    assert not is_mapped(path)
    assert other is not None
    with pytest.raises(RuntimeError, match="returned -1 without raising"):
        other()


# ---- exit

PREAMBLE = """
import atexit, builtins, gc, json, sys, threading, time
import runtime
probe, functions = runtime.load(sys.argv[1]), runtime.load(sys.argv[2])
add, apply = probe["add"], functions["apply"]
print(json.dumps(add(40, 2)), flush=True)
"""
EXITS = {
    "globals": "",
    "builtins": "builtins.kept = [probe, functions, add, apply]",
    "builtins and the loader": "builtins.kept = [sys.modules['runtime.load'], probe]",
    "sys": "sys.kept = [add, probe]; del probe, add",
    "cycle": "gc.disable(); cycle = [probe, add]; cycle.append(cycle)",
    "view": "builtins.view = probe._library.data('__packer_fn_add'); del probe, add",
    "atexit calls": "atexit.register(lambda: add(1, 2))",
    "atexit loads": """
atexit.register(lambda: runtime.load(sys.argv[1])["add"](1, 2))
del probe, add
""",
    "atexit calls back": "atexit.register(apply, lambda: 1)",
    "__del__ calls": """
class Late:
    def __init__(self, call): self.call = call
    def __del__(self): self.call(1, 2)
builtins.late = Late(add)
""",
    "__del__ calls back": """
class Late:
    def __init__(self, call): self.call = call
    def __del__(self):
        try: self.call(lambda: 1)
        except RuntimeError as error: assert "shutting down" in str(error)
builtins.late = Late(apply)
""",
    "__del__ loads": """
class Late:
    load = staticmethod(runtime.load)
    path = sys.argv[1]
    def __del__(self): self.load(self.path)['add'](1, 2)
late = Late(); late.me = late
del probe, add
""",
    "kept callback": "functions['keep'](lambda: 1)",
    "kept function": "functions['keep'](add)",
    "daemon thread calls": """
def run():
    while True: add(1, 2)
threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "daemon thread calls back": """
def run():
    while True: apply(lambda: 1)
for _ in range(4): threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "daemon thread loads": """
def run():
    while True: runtime._core.Library(sys.argv[1])
for _ in range(4): threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "daemon thread waits in a call": """
threading.Thread(target=probe["wait"], args=(60000,), daemon=True).start()
while not probe["is_waiting"](): pass
""",
    "daemon thread waits, names gone": """
threading.Thread(target=probe["wait"], args=(60000,), daemon=True).start()
while not probe["is_waiting"](): pass
del probe, add
""",
    "thread outlives main": """
def run():
    time.sleep(0.1)
    for _ in range(1000): add(1, 2)
threading.Thread(target=run).start()
""",
}


# What host code keeps, or a thread has in hand that ends with the process, nobody gives back.
LOSES = {"kept callback", "kept function", "daemon thread calls back"}


@pytest.mark.parametrize("order", EXITS)
def test_exit_is_quiet(
    order: str, probe_file: Path, functions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G13: whatever is held where, called or waited for, the process ends with 0 and no word."""
    if order in LOSES:
        monkeypatch.setenv("LSAN_OPTIONS", "detect_leaks=0")  # for make sanitize
    assert run_python(PREAMBLE + EXITS[order], str(probe_file), str(functions_file)) == 42


def test_destructor_at_exit_may_raise(compile_library: Callable[..., Path]) -> None:
    """G13: a library that is never closed runs its destructor after the interpreter has gone."""
    path = compile_library("""
#include "dso_packer.h"
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
__attribute__((destructor)) static void leave(void) { dso_raise("KeyError", "too late"); }
""")
    code = "import runtime, sys, builtins; builtins.kept = [runtime.load(sys.argv[1])]; print(1)"
    assert run_python(code, str(path)) == 1


# ---- forks

FORKS = """
import json, os, signal, sys, threading
import runtime
probe = runtime.load(sys.argv[1])
over = False

def load():
    while not over:
        runtime.load(sys.argv[2])["type_index"](1)

def fork(codes):
    for _ in range(60):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            found = probe["add"](40, 2) + runtime.load(sys.argv[2])["type_index"](1)
            os._exit(found)
        codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

codes = set()
threads = [threading.Thread(target=load) for _ in range(3)]
for thread in threads: thread.start()
forker = threading.Thread(target=fork, args=(codes,))
forker.start(); forker.join()
over = True
for thread in threads: thread.join()
print(json.dumps(sorted(codes)))
"""


def test_fork_in_a_thread_while_others_load(probe_file: Path, functions_file: Path) -> None:
    """G9: the child calls what was loaded and loads: no lock is shut, no loader half done."""
    assert run_python(FORKS, str(probe_file), str(functions_file)) == [43]


def test_forked_child_ends_as_any_process(probe_file: Path, functions_file: Path) -> None:
    """The child takes its copy of every library apart at its exit; the parent's stays whole."""
    code = """
import os, sys, threading, runtime
probe = runtime.load(sys.argv[1])
over = threading.Event()
def run():
    while not over.is_set(): runtime.load(sys.argv[2])
thread = threading.Thread(target=run); thread.start()
child = os.fork()
if child == 0:
    sys.exit(probe["add"](3, 4))
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
over.set(); thread.join()
print(status + probe["add"](30, 5))
"""
    assert run_python(code, str(probe_file), str(functions_file)) == 42


WANTS_GIL = """
#include <time.h>
#include <unistd.h>
int PyGILState_Ensure(void);
void PyGILState_Release(int);
__attribute__((constructor)) static void wait(void) {
  char begun = 1;
  (void)!write(BEGUN, &begun, 1);
  nanosleep(&(struct timespec){.tv_nsec = 200000000}, 0);
  PyGILState_Release(PyGILState_Ensure());
}
int wants_gil;
"""


def test_fork_beside_a_constructor_that_wants_the_gil(
    compile_library: Callable[..., Path],
) -> None:
    """A fork waits for loads, but not for ever: whoever forks has the GIL."""
    path = compile_library(WANTS_GIL, "-DBEGUN=9")
    code = """
import json, os, sys, threading, runtime
begun, write_end = os.pipe()
os.dup2(write_end, 9)
thread = threading.Thread(target=runtime.load, args=(sys.argv[1],))
thread.start()
os.read(begun, 1)
child = os.fork()
if child == 0:
    os._exit(7)
thread.join()
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""
    assert run_python(code, str(path)) == 7


# ---- threads that load, call and drop at once (G11)


def test_loads_and_drops_of_one_module_in_threads(probe_file: Path) -> None:
    """G11: a module that one thread drops while another loads it is whole for both."""
    found: set[int] = set()

    def run() -> None:
        for _ in range(300):
            found.add(runtime.load(probe_file)["add"](40, 2))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert (found, is_mapped(probe_file)) == ({42}, False)


# ---- rounds


def test_ten_thousand_rounds_leave_nothing() -> None:
    """Memory, descriptors and mappings stay flat; `make stress` does a million."""
    done = subprocess.run(
        [sys.executable, STRESS, "10000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
