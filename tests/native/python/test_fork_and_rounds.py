"""Forks during loads, and many rounds of load and drop."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import runtime

from ...support.mapped import is_mapped
from ...support.paths import TESTS
from ...support.process import run_python

STRESS = TESTS / "stress" / "load_rounds.py"


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
    """The child calls the loaded library and loads: no lock is held, no loader half done."""
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


def test_fork_beside_a_constructor_that_needs_the_gil(
    compile_library: Callable[..., Path],
) -> None:
    """A fork waits for loads, but not for ever: the forking thread has the GIL."""
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


def test_loads_and_drops_of_one_module_in_threads(probe_file: Path) -> None:
    """A module that one thread drops while another loads it is whole for both."""
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


def test_ten_thousand_rounds_leave_nothing() -> None:
    """Memory, descriptors and mappings stay flat; `make stress` does a million."""
    done = subprocess.run(
        [sys.executable, STRESS, "10000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
