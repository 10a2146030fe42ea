"""Calls that allocate, return, raise and catch do not grow, and release nothing in use."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .conftest import EXAMPLES

ROUNDS = 300  # one block of 100 bytes for each is found
ARGUMENTS: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "of_an_argument": lambda x: (np.arange(10.0), x),
    "texts": lambda x: ("some téxt", x),
    "the_text_itself": lambda x: ("some téxt", x),
    "caught": lambda x: (x, 5),
    "elements": lambda x: (np.full(5, float(x)),),
    "rows": lambda x: (np.full((3, 4), float(x)),),
}
RAISING = {
    "an_array": "ValueError: an array",
    "nested": "ValueError: checked",
    "of_an_argument": "ValueError: checked",
    "texts": "KeyError: 'texts",
    "the_text_itself": "ValueError: ('some téxt!', 9, 'some téxt')",
    "containers": "RuntimeError: containers",
    "inside_a_list": "ValueError: inside",
    "an_object": "ValueError: half made",
    "too_large": "MemoryError: Allocation failed",
    "several": "ValueError: several",
    "caught_and_raised": "KeyError: 'again",
    "loops": "ValueError: ",
    "lists_of_loops": "ValueError: after the loop",
    "written": "IndexError: index is out of bounds",
    "elements": "ValueError: checked",
    "rows": "ValueError: checked",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of examples/raising.py."""
    module = packer.from_numba(EXAMPLES / "raising.py")
    assert set(module.left_out) == {"check", "told"}
    return packer.export_library(module, tmp_path_factory.mktemp("raising") / "raising.so")


@pytest.fixture(scope="module")
def raising(path: Path) -> Any:
    """Its functions."""
    return runtime.load(path)


class _MallInfo2(ctypes.Structure):  # mallinfo(3)
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _heap() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallInfo2
    used = libc.mallinfo2()
    return int(used.uordblks + used.hblkhd)


def _call(library: Any, name: str, x: int) -> Any:
    return library[name](*ARGUMENTS.get(name, lambda x: (x,))(x))


def _told(library: Any, name: str, x: int) -> str:
    try:
        _call(library, name, x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("name", [*RAISING, "caught", "caught_here"])
@pytest.mark.parametrize("x", [0, 1])
def test_calls_do_not_grow(raising: Any, name: str, x: int) -> None:
    """Also functions that raise while they hold arrays, lists, tables, texts and objects."""
    grown = 0
    for rounds in (20, ROUNDS):
        before = _heap()
        for _ in range(rounds):
            told = _told(raising, name, x)
        grown = _heap() - before
    assert grown < 50 * ROUNDS
    assert told.startswith(RAISING.get(name, "") if x else "")
    assert bool(told) == (x == 1 and name in RAISING)


def test_results_outlive_calls_that_raise(raising: Any) -> None:
    """A result belongs to its owner, whatever later calls release."""
    held = [_call(raising, "nested", 0) if i % 2 else _call(raising, "several", 0)[0]
            for i in range(20)]  # fmt: skip
    texts = [_call(raising, "several", 0)[1] for _ in range(20)]
    for name in RAISING:
        _told(raising, name, 1)
    for index, tensor in enumerate(held):
        expected = np.zeros(5) if index % 2 else np.ones(10)
        np.testing.assert_array_equal(np.from_dlpack(tensor), expected)
    assert texts == ["name0"] * 20


def test_a_handler_keeps_the_values_of_its_function(raising: Any) -> None:
    """Only what the raising function held is released, and that at the end."""
    for count in (0, 1, 50):
        result = np.from_dlpack(raising["caught"](1, count))
        np.testing.assert_array_equal(result, np.full(4, 2.0 + 3 * count))
    assert raising["caught_here"](1) == -1.0


def test_an_exception_of_a_loop_has_the_values_of_the_run(raising: Any) -> None:
    """Whichever part raised first."""
    for _ in range(20):
        told = _told(raising, "loops", 1)
        assert told.startswith(("ValueError: checked", "ValueError: ('a loop', 3"))


def test_an_exception_of_a_loop_is_forgotten_with_its_call(raising: Any) -> None:
    """The next call returns."""
    _told(raising, "loops", 1)
    np.testing.assert_array_equal(np.from_dlpack(raising["loops"](0)), np.full(40, 20.0))


CALLS = """
import array, sys, runtime
library = runtime.load(sys.argv[1])
for _ in range(2):
    for name in sys.argv[2:]:
        for x in (0, 1):
            numbers = array.array("d", [float(x)] * 8)
            given = {"of_an_argument": (numbers, x), "texts": ("text", x), "caught": (x, 3),
                     "the_text_itself": ("text", x), "elements": (numbers,), "rows": (numbers,)}
            try:
                library[name](*given.get(name, (x,)))
            except Exception:
                pass
print("called")
"""


def test_no_memory_is_used_after_its_release(path: Path, tmp_path: Path) -> None:
    """Memory is overwritten when it is freed (glibc's perturb), and its checks are on."""
    environment = {"GLIBC_TUNABLES": "glibc.malloc.perturb=165:glibc.malloc.check=3"}
    environment |= {"LD_PRELOAD": "libc_malloc_debug.so.0", "TVM_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", CALLS, str(path), *RAISING, "caught", "caught_here"],
        env=environment, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("called\n", 0), done.stderr
