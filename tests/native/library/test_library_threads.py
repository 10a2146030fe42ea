"""Libraries in threads, small stacks, forked children and constructors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from runtime._core import Library

from ..plain_library import ADD, CompileLibrary, answer


def test_many_threads_open_and_close(compile_library: CompileLibrary, library_file: Path) -> None:
    """Threads open, call and drop the same file and different ones."""
    paths = [library_file, *(compile_library(ADD, f"-DANSWER={n}") for n in (2, 3, 4))]
    found: list[bool] = []

    def run(number: int) -> None:
        for turn in range(50):
            index = (number + turn) % len(paths)
            found.append(answer(Library(str(paths[index]))) == index + 1)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * (16 * 50)


def test_small_stack_and_signals(library_file: Path) -> None:
    """Neither a small thread stack nor a shower of signals disturbs a load."""
    found: list[int] = []

    def run() -> None:
        found.extend(answer(Library(str(library_file))) for _ in range(300))

    before = threading.stack_size(64 * 1024)
    handler = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        run()
        thread.join()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        threading.stack_size(before)
    assert found == [1] * 600


def test_forked_child_calls_and_loads(library_file: Path) -> None:
    """A library that was loaded before a fork works after it in both processes."""
    library = Library(str(library_file))
    child = os.fork()
    if child == 0:
        os._exit(answer(library) + answer(Library(str(library_file))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert answer(library) == 1


LOADS_ANOTHER = """
int PyGILState_Ensure(void);
void PyGILState_Release(int);
int PyRun_SimpleString(const char *);
__attribute__((constructor)) static void load(void) {
  int state = PyGILState_Ensure();
  PyRun_SimpleString("import runtime._core, os; runtime._core.Library(os.environ['ANOTHER'])");
  PyGILState_Release(state);
}
int loads_another;
"""


def test_constructor_may_load_another_library(
    compile_library: CompileLibrary, library_file: Path
) -> None:
    """The loader's lock can be taken again by the thread that has it."""
    path = compile_library(LOADS_ANOTHER)
    code = f"from runtime._core import Library; print(Library({str(path)!r}).path)"
    environment = {**os.environ, "ANOTHER": str(library_file)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == (f"{path}\n", "")
