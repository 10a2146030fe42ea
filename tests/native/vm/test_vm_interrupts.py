"""Bytecode that runs for long lets Python's signal handlers run."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.paths import FOUND
from ...support.vm_assembler import *


def loop() -> Any:
    """Two jumps, as the library has them."""
    return runtime.load(FOUND / "vm_endless_loop.so")["main"]


def calls() -> Any:
    """No jump at all: each of 60 functions calls the next one twice."""
    codes = [
        Code(f"f{i}", [], [call(VOID, i + 1), call(VOID, i + 1), ret(VOID)], 1) for i in range(60)
    ]
    return load(Reader(Program([*codes, Code("f60", [], [ret(VOID)], 1)]).payload()))["f0"]


def condition() -> Any:
    """A branch back, which is always taken."""
    code = [call(0, 1, imm(0)), branch(0, -1), ret(0)]
    program = Program([Code("main", [], code, 1), packed("vm.builtin.copy")])
    return load(Reader(program.payload()))["main"]


def heaps() -> Any:
    """Each step of the loop allocates and fills 8 MB."""
    code = [call(0, 1, CONTEXT, imm(1 << 20)), goto(-1)]
    program = Program([Code("main", [], code, 1), packed("vm.builtin.alloc_shape_heap")])
    return load(Reader(program.payload()))["main"]


def nested() -> Any:
    """The loop in a closure, which a machine calls through another function object."""
    code = [call(VOID, 2, func(1), const(0)), ret(VOID)]
    codes = [Code("main", [], code, 1), Code("loop", [], [goto(1), goto(-1)], 1)]
    program = Program([*codes, packed("vm.builtin.call_tir_dyn")], [(SHAPE, [])])
    return load(Reader(program.payload()))["main"]


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Python's own handler of SIGINT, which is not there if the tests were started by nohup."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("make", [loop, calls, condition, heaps, nested])
def test_ctrl_c_ends_a_run(make: Callable[[], Any]) -> None:
    """The interrupt arrives as KeyboardInterrupt, and the machine can be called again."""
    function = make()
    for _ in range(2):
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            function()
        timer.join()


def test_a_handler_runs_during_a_run() -> None:
    """A handler that raises nothing does not end the run, whose arguments are freed in the end."""
    seen: list[int] = []

    def handle(number: int, _: object) -> None:
        seen.append(number)
        if len(seen) == 3:
            raise TimeoutError

    array = np.zeros(64, "float32")
    gone = weakref.ref(array)
    code = [call(1, 1, reg(0), reg(0)), goto(-1)]
    program = Program([Code("main", ["x"], code, 2), packed("vm.builtin.make_tuple")])
    main = load(Reader(program.payload()))["main"]
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(TimeoutError):
            main((array,))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [signal.SIGALRM] * 3
    del array
    assert gone() is None


# ---- Without a jump

NAPS = """
#include <stdint.h>
#include <unistd.h>
static long naps;
long num_naps(void) { return naps; }
void nap(int64_t ms) {
  if (ms == 0) return;
  usleep((useconds_t)ms * 1000);
  naps++;
}
"""


def model(folder: Path, code: list[list[int]]) -> runtime.Module:
    """Functions 1 and 2 of the code: `nap` in C, and an allocation."""
    functions = [Code("main", [], [*code, ret(VOID)], 1), packed("nap")]
    program = Program([*functions, packed("vm.builtin.alloc_shape_heap")])
    executable = load(Reader(program.payload()))
    declared = {"nap": "void(int64_t ms)", "num_naps": "long()"}
    executable.import_module(packer.CSourceModule(NAPS, functions=declared))
    return runtime.load(packer.export_library(executable, folder / "model.so"))


NAP = call(VOID, 1, imm(20))
ALLOCATION = call(0, 2, CONTEXT, imm(1 << 20))


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize(
    "code",
    [
        [NAP] * 1000,
        [call(VOID, 1, imm(0))] * 1000 + [NAP] * 1000,
        [ALLOCATION] * 10000 + [NAP] * 1000,
        [ALLOCATION, NAP] * 1000,
    ],
    ids=["calls", "short-calls-before", "allocations-before", "allocations-between"],
)
def test_ctrl_c_ends_a_straight_line(tmp_path: Path, code: list[list[int]]) -> None:
    """Slow calls and allocations poll by themselves, whatever was before them."""
    loaded = model(tmp_path, code)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        loaded["main"]()
    timer.join()
    assert loaded["num_naps"]() < 500
