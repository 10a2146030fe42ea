"""The global functions of the core, in Python and in C; tests/tvm compares them with TVM's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime._core import fail_allocation
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.dso_script import run_by_c, tensor
from ...support.vm_assembler import STR, Code, Program, call, const, imm, packed, reg, ret


def function(name: str) -> Callable[..., Any]:
    """A global function."""
    return runtime.get_global_func(name)


def test_sorts_are_stable() -> None:
    """NumPy's stable sort is the oracle, for lengths around each step of the merges."""
    draws = np.random.default_rng(0)
    for length in (*range(34), 100, 2000):
        x = draws.integers(0, 9, length).astype("float32")
        y, order = np.empty_like(x), np.empty(length, "int32")
        function("tvm.contrib.sort.sort")(x, y, 0, True)
        function("tvm.contrib.sort.argsort")(-x, order, 0, False)
        np.testing.assert_array_equal(y, np.sort(x))
        np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    function("tvm.contrib.sort.sort")(x, x, 0, True)  # in place
    np.testing.assert_array_equal(x, y)


def test_a_seed_gives_the_numbers_of_the_mersenne_twister() -> None:
    """NumPy has the same generator."""
    x = np.empty(2000, "uint8")
    for seed in (0, 5, 1 << 31):
        function("tvm.contrib.random.seed")(seed)
        function("tvm.contrib.random.randint")(0, 256, x)
        twister = np.random.RandomState(seed)
        expected = twister.randint(0, 1 << 32, x.size, dtype="uint32") % 256
        np.testing.assert_array_equal(x, expected)


def test_wrong_arguments_are_refused() -> None:
    """Read-only and short outputs, gaps between elements, and other values."""
    x, out = np.zeros((4, 4), "float32"), np.zeros((4, 4), "float32")
    fixed = out.copy()
    fixed.setflags(write=False)
    sort = function("tvm.contrib.sort.sort")
    with pytest.raises(ValueError, match="argument 2 is an output, expected writable memory"):
        sort(x, fixed, 0, True)
    with pytest.raises(ValueError, match="argument 2, expected 16 elements, found 4"):
        sort(x, out[0], 0, True)
    with pytest.raises(TypeError, match="argument 1, expected a contiguous tensor"):
        sort(x[:, ::2], out[:, :2].copy(), 0, True)
    with pytest.raises(TypeError, match=r"sort\.sort: argument 1, expected a tensor, found int"):
        sort(1, out, 0, True)
    with pytest.raises(TypeError, match="expected 4 arguments, found 2"):
        sort(x, out)
    with pytest.raises(ValueError, match="axis 2, expected one of a tensor of 2 dimensions"):
        sort(x, out, 2, True)
    with pytest.raises(ValueError, match="an output of 16 elements, expected 400"):
        function("tvm.contrib.sort.topk")(x, out, 100, 1, "values", True)
    with pytest.raises(TypeError, match="a tensor of whole bytes, found a tensor of complex8"):
        function("relax.run.nonzero")(runtime.Tensor(bytes(2), (2,), (5, 8, 1)))
    tokens = np.array([9], "int32")
    with pytest.raises(IndexError, match="token 9, expected less than 4"):
        function("vm.builtin.apply_repetition_penalty")(out[0], tokens, 1.5)


def test_nan_ends_no_sort_of_tokens() -> None:
    """std::sort would leave the array; the result is some token."""
    for length in (3, 17, 200):
        logits = np.full((1, length), np.nan, "float32")
        logits[0, ::3] = np.arange(0, length, 3)
        token = function("vm.builtin.sample_top_p_from_logits")(logits, 0.0, 0.9, 0.5)
        assert 0 <= token < length


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("tvm.contrib.sort.sort", (np.ones((2, 9)), np.zeros((2, 9)), 1, True)),
        ("tvm.contrib.sort.topk", (np.ones(9), np.zeros(3), 3, 0, "values", True)),
        ("relax.run.unique", (np.arange(6), 1, 1, 1, 1)),
        ("relax.run.nonzero", (np.arange(6),)),
        ("vm.builtin.sample_top_p_from_prob", (np.ones((1, 4), "float32") / 4, 0.5, 0.3)),
        ("vm.builtin.tensor_cache.update", ("test.memory", np.ones(3), True)),
    ],
)
def test_memory_that_runs_out_is_an_error(name, args) -> None:
    """At each allocation."""
    called = function(name)
    for number in range(1, 100):
        fail_allocation(number)
        try:
            called(*args)
        except (MemoryError, runtime.DeviceError):
            continue
        finally:
            left = fail_allocation(0)
        assert left > 0, "an allocation failed without an error"
        break
    else:
        pytest.fail("more allocations than expected")
    assert number > 1
    function("vm.builtin.tensor_cache.clear")()


def test_a_debug_function_is_a_global_one(capsys) -> None:
    """It gets the place and the further arguments; its name may be one of Python."""
    runtime.register_func("test.debug", lambda *values: print(*values), override=True)
    assert function("vm.builtin.invoke_debug_func")(None, "test.debug", "a.py:3", 4) is None
    assert capsys.readouterr().out == "a.py:3 4\n"
    with pytest.raises(runtime.FunctionNotFoundError, match=r"'test\.absent'"):
        function("vm.builtin.invoke_debug_func")(None, "test.absent", "a.py:3")


def test_a_c_program_has_them(tmp_path: Path) -> None:
    """Printing, random numbers, and a module of cached parameters, without Python."""
    names = [
        *("relax.run.print", "tvm.contrib.random.seed", "vm.builtin.tensor_cache.update"),
        *("vm.builtin.param_module_from_cache", "relax.run.assert_op"),
    ]
    code = [
        call(1, 1, const(0), reg(0)),
        call(1, 2, imm(5)),
        call(1, 3, const(1), reg(0)),
        call(1, 4, const(2), imm(-1)),
        ret(1),
    ]
    failing = Code("fail", [], [call(0, 5, imm(0), const(0), imm(3)), ret(0)], 1)
    program = Program([Code("main", ["x"], code, 2), *map(packed, names), failing])
    program.constants = [(STR, "x = {}!"), (STR, "p_0"), (STR, "p")]
    path = packer.export_library(load(Reader(program.payload())), tmp_path / "model.so")
    x = tensor(np.array([[1.5, 2], [3, 1e-3]], "float32"))
    printed = run_by_c(f"load {path}", f"call 0 main {x}", "call 0 fail", "call 1 get_params")
    assert "x = [[1.5e+00 2.0e+00]\n [3.0e+00 1.0e-03]]!\n" in printed
    assert "error AssertionError: x = 3!" in printed
    assert "1.5" in printed.partition("get_params")[2] or "tensor" in printed
