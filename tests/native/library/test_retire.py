"""Imports that are closed while a mapped library still calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from ...support.paths import C_SOURCES
from ...support.process import run_python

HOST = C_SOURCES / "host.c"

# answer: reports that it began, then waits in this library's code until it may continue.
SLOW = """
#include <unistd.h>
#include "dso_packer.h"
static int began, go_on;
DSO_EXPORT int __tvm_ffi_use(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)n;
  began = (int)args[0].v_int64;
  go_on = (int)args[1].v_int64;
  *result = dso_none();
  return 0;
}
DSO_EXPORT int __tvm_ffi_answer(void *h, const dso_any *args, int32_t n, dso_any *result) {
  char byte = 0;
  (void)h, (void)args, (void)n;
  if (write(began, &byte, 1) != 1 || read(go_on, &byte, 1) != 1) return -1;
  *result = dso_int(byte);
  return 0;
}
/* The same function as an object, which is not a symbol of a library. */
static dso_function_object object = {{1 | (uint64_t)1 << 32, DSO_FUNCTION, 0, 0}, 0, 0};
DSO_EXPORT int __tvm_ffi_make(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)args, (void)n;
  object.safe_call = __tvm_ffi_answer;
  dso_object_retain(&object.object);
  *result = dso_object_value(&object.object);
  return 0;
}
"""
IN_CALL = """
import gc, json, os, sys
from pathlib import Path
import runtime
def is_mapped():
    return sys.argv[2] in Path("/proc/self/maps").read_text()
class Functions(runtime.Module):
    def find_function(self, name):
        return slow["make"]()
host, slow = map(runtime.load, sys.argv[1:3])
began, go_on = os.pipe(), os.pipe()
slow["use"](began[1], go_on[0])
host.import_module(slow if sys.argv[3] == "symbol" else Functions())
host["remember"]("answer")
host["begin"]()
os.read(began[0], 1)
del host, slow
gc.collect()
mapped = [is_mapped()]
os.write(go_on[1], b"*")
host = runtime.load(sys.argv[1])
result = host["finish"]()
mapped.append(is_mapped())
print(json.dumps([result, mapped]))
"""


@pytest.mark.parametrize(("kind", "is_kept"), [("symbol", True), ("object", False)])
def test_import_stays_while_a_thread_calls_it(kind, is_kept, compile_library) -> None:
    """A mapped caller keeps the import open if it called its symbol, but not through an object."""
    host = compile_library(HOST.read_text(), "-Wl,-z,nodelete", "-pthread")
    result = run_python(IN_CALL, str(host), str(compile_library(SLOW)), kind)
    assert result == [42, [True, is_kept]]


def test_closed_caller_closes_the_libraries_that_it_called(compile_library, tmp_path: Path) -> None:
    """Only a caller that stays mapped keeps the other library."""
    paths = [tmp_path / name for name in ("host.so", "other.so")]
    for path in paths:
        path.write_bytes(compile_library(HOST.read_text(), "-pthread").read_bytes())
    host, other = map(runtime.load, paths)
    host.import_module(other)
    assert host["call"]("add", 40, 2) == 42
    del host, other
    mapped = Path("/proc/self/maps").read_text()
    assert not any(str(path) in mapped for path in paths)


CALLS = """
#include <pthread.h>
#include "dso_packer.h"
static volatile int is_over;
static long calls;
static pthread_t threads[4];
static void *loop(void *unused) {
  while (!is_over) {
    dso_any result = dso_none();
    if (dso_call("add", &result, dso_int(40), dso_int(2)) == 0 && result.v_int64 == 42)
      __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  }
  return unused;
}
void start(void) { for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, loop, 0); }
long stop(void) {
  is_over = 1;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  return calls;
}
"""
ROUNDS = """
import json, sys, time
import runtime
class Python(runtime.Module):
    def find_function(self, name):
        return (lambda a, b: a + b) if name == "add" else None
host_path, kind, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.setswitchinterval(1e-5)  # the threads take the GIL for each failed look-up
for i in range(rounds):
    host = runtime.load(host_path)
    add = Python() if kind == "python" else runtime.load(kind)
    host.import_module(add)
    if i == 0:
        host["start"]()
    time.sleep(0.001 * (i % 3))
    del host, add
print(json.dumps(runtime.load(host_path)["stop"]()))
"""


@pytest.mark.parametrize("kind", ["library", "python"])
def test_threads_of_a_library_call_while_its_imports_change(kind, tmp_path: Path) -> None:
    """Four threads and 200 rounds of races; the tests above trip each guard alone.

    With the usual switch interval the main thread may wait minutes for the GIL.
    """
    host = packer.CSourceModule(CALLS, functions={"start": "void()", "stop": "long()"})
    options = ["-Wl,-z,nodelete", "-pthread"]
    path = packer.export_library(host, tmp_path / "host.so", options=options)
    if kind == "library":
        add = packer.CSourceModule(
            "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
        )
        kind = str(packer.export_library(add, tmp_path / "add.so"))
    assert run_python(ROUNDS, str(path), kind, "200") > 0


CYCLE = """
import gc, json, sys
import runtime
class Functions(runtime.Module):
    pass
def leave_a_cycle():
    host, functions = runtime.load(sys.argv[1]), Functions()
    functions.find_function = lambda name, add=host["add"]: (lambda: add(20, 22))
    host.import_module(functions)
    host["remember"]("f")
    return host["call_remembered"]()
answers = [leave_a_cycle()]
gc.collect()
runtime.register_func("f")(lambda: 7)
host = runtime.load(sys.argv[1])
answers.append(host["call_remembered"]())
print(json.dumps(answers))
"""


def test_collected_library_leaves_objects_that_its_code_points_to(compile_library) -> None:
    """The collector frees objects that a function references, but not what code points to."""
    host = compile_library(HOST.read_text(), "-Wl,-z,nodelete", "-pthread")
    assert run_python(CYCLE, str(host)) == [42, 7]
