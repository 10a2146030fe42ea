"""Libraries of bytecode that a campaign found: each loads, and its call ends as it should."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import runtime
from runtime.modules.vm import load
from runtime.relax.vm import VirtualMachine
from runtime.serial.stream import Reader

from ...support.paths import FOUND
from ...support.vm_assembler import *


def model(name: str) -> Any:
    """One of the libraries."""
    return runtime.load(FOUND / f"{name}.so")


@pytest.mark.parametrize(
    ("name", "nbytes"), [("vm_int1_reads_outside", 8192), ("vm_int1_crashes", 1 << 26)]
)
def test_a_result_of_packed_elements_shows_its_own_bytes(name: str, nbytes: int) -> None:
    """Allocation, reading, writing and export count by one rule: the last byte is in the block."""
    result = model(name)["main"]()
    assert (result.nbytes, result.raw.nbytes) == (nbytes, nbytes)
    assert result.shape == (8 * nbytes,)
    result.raw[-1] = 0x5A
    assert bytes(result.raw[-1:]) == b"\x5a"
    copy = runtime.empty(result.shape, result.dtype).copy_from(result)
    assert copy.raw[nbytes - 1] == 0x5A
    with pytest.raises(BufferError, match="no buffer format; use .raw"):
        result.numpy()


def test_a_constant_is_not_a_heap() -> None:
    """match_shape stores into a heap of alloc_shape_heap, never into a constant."""
    text = r"match_shape: argument 2, expected a shape heap that alloc_shape_heap made"
    with pytest.raises(TypeError, match=text):
        model("vm_stores_into_constant")["main"](np.zeros(4, "float32"))


def test_a_constant_is_not_an_output() -> None:
    """A declared writable argument refuses read-only memory, from any caller."""
    text = (
        r"twice: argument 2 'y': expected a writable tensor, found a read-only one; declared as "
        r"void twice\(const float \*x, float \*y, int64_t n\)"
    )
    with pytest.raises(ValueError, match=text):
        model("vm_passes_constant_as_output")["main"](np.zeros(4, "float32"))


def test_shared_tuples_become_shared_tuples() -> None:
    """2^40 leaves in 40 tuples: the work is linear in the tuples, out, in and on another device."""
    result = model("vm_tuples_2_to_40")["main"]()
    depth, item = 0, result
    while isinstance(item, tuple) and item:
        assert all(other is item[0] for other in item)
        depth, item = depth + 1, item[0]
    assert depth >= 40
    program = Program([Code("main", ["x"], [ret(0)], 1)])
    executable = load(Reader(program.payload()))
    assert executable["main"](result)[0] is not None
    machine = VirtualMachine(executable)
    machine.set_input("main", result)
    machine.invoke_stateful("main")
    assert machine.get_outputs("main")[0] is machine.get_outputs("main")[1]


def test_copied_shared_tuples_are_bounded() -> None:
    """An unaligned tensor in them is copied for each place that has it, so places are counted."""
    value: Any = np.zeros(17, "float32")[1:]
    for _ in range(40):
        value = (value, value)
    main = load(Reader(Program([Code("main", ["x"], [ret(0)], 1)]).payload()))["main"]
    with pytest.raises(ValueError, match="items in tuples, expected at most 1048576 in total"):
        main(value)


# ---- Changes that only a digest could detect


def test_a_host_function_with_another_n_runs_in_a_child() -> None:
    """Its bytecode is valid and states how much the host function writes: the check cannot know."""
    code = (
        "import sys, numpy, runtime\n"
        "function = runtime.load(sys.argv[1])['main']\n"
        "print('called', flush=True)\n"
        "function(numpy.zeros(4, 'float32'))\n"
    )
    path = str(FOUND / "vm_host_function_gets_another_n.so")
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, path],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout == "called\n", done.stderr
