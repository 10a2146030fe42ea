"""The owner of the objects that packed C functions pass; each test in a separate process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ...support.paths import C_SOURCES
from ...support.process import run_python

SOURCE = (C_SOURCES / "packed.c").read_text()

# call(name, ...) of packed.c returns the result of TVMFuncCall.
BEGIN = """
import gc, json, sys, threading, time
import runtime
class Functions(runtime.Module):
    def __init__(self, **functions):
        self.functions = functions
    def find_function(self, name):
        return self.functions.get(name)
class Object:
    alive = 0
    def __init__(self, at_end=lambda: None):
        Object.alive += 1
        self.at_end = at_end
    def __call__(self):
        return 1
    def __del__(self):
        self.at_end()
        Object.alive -= 1
library = runtime.load(sys.argv[1])
"""


@pytest.fixture
def run(compile_library) -> Callable[[str], Any]:
    """Run code over packed.c in a fresh process; its last line is the result."""
    path = str(compile_library(SOURCE))
    return lambda code: run_python(BEGIN + code, path)


def test_object_of_an_import_is_returned(run) -> None:
    """A packed function returns its argument; the thread keeps a reference to it."""
    code = """
library.import_module(Functions(f=Object, end=lambda: None))
results = [library["call"]("f") for _ in range(100)]
kinds = {type(result).__name__ for result in results}
del results
library["call"]("end")
print(json.dumps([list(kinds), Object.alive]))
"""
    assert run(code) == [["Object"], 0]


def test_module_of_an_import_is_returned(run) -> None:
    """A module is passed like other objects."""
    code = """
module = Functions()
before = sys.getrefcount(module)
library.import_module(Functions(f=lambda: module, end=lambda: None))
same = all(library["call"]("f") is module for _ in range(100))
library["call"]("end")
print(json.dumps([same, sys.getrefcount(module) - before]))
"""
    assert run(code) == [True, 0]


def test_argument_is_returned(run) -> None:
    """A packed function borrows its arguments; one that it returns is retained."""
    code = """
argument = Object()
before = sys.getrefcount(argument)
same = [library["echo"](argument) is argument for _ in range(100)]
module = Functions()
same += [library["echo"](module) is module for _ in range(100)]
print(json.dumps([all(same), sys.getrefcount(argument) - before]))
"""
    assert run(code) == [True, 0]


@pytest.mark.parametrize("text", ["S" * 40, "small", b"B" * 40, b"small"])
def test_finalizer_that_calls_back_leaves_the_result(run, text) -> None:
    """Releasing the result before runs a finalizer, whose own results are not the caller's."""
    code = f"""
def at_end():
    ends.append([library["call"]("third"), library["call"]("fourth")])
ends = []
functions = dict(first=lambda: Object(at_end), second=lambda: {text!r})
functions |= dict(third=lambda: "T" * 50, fourth=lambda: b"fourth")
library.import_module(Functions(**functions))
results = []
for _ in range(3):
    library["call"]("first")
    results.append(library["call"]("second") == {text!r})
expected = [["T" * 50, b"fourth"]] * 3
print(json.dumps([results, ends == expected]))
"""
    assert run(code) == [[True] * 3, True]


CHAIN = """
def link(depth):
    def at_end():
        if depth:
            left.append(depth - 1)
            library["call"]("link")
    return Object(at_end)
left = []
library.import_module(Functions(link=lambda: link(left.pop()), end=lambda: None))
def begin(depth):
    left.append(depth)
    library["call"]("link")
"""


@pytest.mark.parametrize("depth", [0, 1, 3, 50])
def test_chain_of_finalizers_ends_in_a_call(run, depth) -> None:
    """Each object's finalizer gets the next one: all are released by one call."""
    code = f"""
for _ in range(5):
    begin({depth})
    library["call"]("end")
print(json.dumps([left, Object.alive]))
"""
    assert run(CHAIN + code) == [[], 0]


@pytest.mark.parametrize("depth", [0, 1, 3, 50])
def test_chain_of_finalizers_ends_with_the_thread(run, depth) -> None:
    """Objects are released once when the thread ends, too."""
    code = f"""
for _ in range(20):
    thread = threading.Thread(target=begin, args=({depth},))
    thread.start()
    thread.join()
    until = time.monotonic() + 10  # the system's thread ends after Python's
    while Object.alive and time.monotonic() < until:
        time.sleep(0.001)
print(json.dumps([left, Object.alive]))
"""
    assert run(CHAIN + code) == [[], 0]


def test_endless_chain_of_finalizers_ends(run) -> None:
    """Objects whose finalizers create new objects for ever do not hang a call."""
    code = """
def forever():
    return Object(lambda: library["call"]("forever"))
library.import_module(Functions(forever=forever, end=lambda: 7))
library["call"]("forever")
print(json.dumps(library["call"]("end")))
import os; sys.stdout.flush(); os._exit(0)
"""
    assert run(code) == 7
