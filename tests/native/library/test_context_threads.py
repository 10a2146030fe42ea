"""Look-ups in threads, on both sides of a fork, at the end of a process."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import runtime
from runtime._core import Library

from ...support.compile import compile_c
from ...support.importing import Functions, importing
from ...support.process import run_python


def test_threads_look_up_at_once(host) -> None:
    """One name from many threads, while imports change elsewhere and here."""
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
    """Libraries open and close while others call; a context is never mistaken."""
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
    """Names are found before and after a fork, in parent and child."""
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
    """A library that a foreign thread (PoCL's, say) is loading does not end the child.

    That dlopen is blocked, deterministically, by a needed library which is a pipe without a writer.
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
    """Daemon threads and a __del__ are in look-ups when the interpreter ends."""
    for _ in range(3):
        assert run_python(EXIT, str(host_path)) == 1
