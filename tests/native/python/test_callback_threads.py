"""Callbacks from native threads, from several calls, and at the end of a process."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from runtime._core import Library

from .callables import Probe

SOURCE = "functions.c"


def test_callback_from_a_native_thread(probe: Probe) -> None:
    """A thread that Python does not know takes the GIL for each call."""
    threads: set[int] = set()

    def square(number: int) -> int:
        threads.add(threading.get_ident())
        return number * number

    assert probe("apply_in_thread")(square, 100) == sum(n * n for n in range(100))
    assert threading.get_ident() not in threads


def test_exception_in_a_native_thread(probe: Probe) -> None:
    """The exception ends in the thread; the caller gets the error that host code makes of it."""

    def fail(_: int) -> int:
        raise KeyError("there")

    with pytest.raises(RuntimeError, match="^failed$") as caught:
        probe("apply_in_thread")(fail, 1)
    assert caught.value.__context__ is None


def test_native_threads_beside_python_threads(probe: Probe) -> None:
    """Callbacks of several native threads and Python's own run side by side."""
    sums: list[int] = []

    def run() -> None:
        sums.extend(probe("apply_in_thread")(lambda n: n, 200) for _ in range(5))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(200))] * 20


def test_two_calls_run_at_once(probe: Probe) -> None:
    """Threads scale: each waits inside its call until the other is inside, too."""
    met: list[object] = []
    threads = [threading.Thread(target=lambda: met.append(probe("meet")(2, 30))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [True, True]


EXIT = """
import os, sys
from runtime._core import Library
library = Library(sys.argv[1])
keep, call_kept = library.function("keep", None), library.function("call_kept", None)
keep(lambda: print("called"))
call_kept()

class Late:
    def __del__(self, call_kept=call_kept, write=os.write):
        try:
            call_kept()
        except RuntimeError as error:
            write(2, str(error).encode())

sys.late = Late()
"""


def test_callback_at_interpreter_exit(library: Library) -> None:
    """A callable that host code still keeps is not called while the interpreter ends."""
    ran = subprocess.run(
        [sys.executable, "-c", EXIT, library.path],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "called\n")
    assert ran.stderr == "the Python interpreter is shutting down"
