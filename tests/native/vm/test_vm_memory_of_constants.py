"""The memory that constants of bytecode take: the file's pages, or one copy of them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.cli import main
from packer.relax import Program
from packer.relax.align import align_constants

NBYTES = 32 << 20

# The growth of the process in MiB when a machine is made, and whether a constant is read-only.
SCRIPT = """
import sys, numpy, runtime
def used():
    lines = open("/proc/self/status").read().splitlines()
    return sum(int(l.split()[1]) for l in lines if l.startswith(("RssAnon", "RssFile"))) / 1024
model = runtime.load(sys.argv[1])
numpy.ones(9).sum()
before = used()
results = [model["first"](), model["second"]()]
sums = [float(result.numpy().sum(dtype="float64")) for result in results]
print((used() - before, sums, [result.readonly for result in results]))
"""


def model(pad: int) -> runtime.Module:
    """Two constants of 32 MiB, after a name of any length that moves them in the file."""
    program = Program()
    for number, name in enumerate(["first", "second"], 1):
        code = program.function(name, [])
        array = np.full(NBYTES // 4, number, "float32")
        code.ret(code.call("vm.builtin.copy", runtime.tensor(array)))
    tiny = program.function("tiny", ["p" * pad])
    tiny.ret(tiny.params[0])
    return program.executable()


def measured(path: Path) -> tuple[float, list[float], list[bool]]:
    """The output of the script, in a fresh process."""
    command = [sys.executable, "-P", "-c", SCRIPT, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    growth, sums, readonly = ast.literal_eval(ran.stdout)
    return growth, sums, readonly


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_constants_that_are_not_aligned_are_copied_once(tmp_path: Path, pad: int) -> None:
    """The pages of the file are given back: the process grows by the size of the constants."""
    packer.export_library(model(pad), tmp_path / "model.so")
    growth, sums, readonly = measured(tmp_path / "model.so")
    assert sums == [NBYTES // 4, NBYTES // 2]
    assert readonly == [True, True]
    assert growth < 1.15 * 2 * NBYTES / 2**20


def test_aligned_constants_are_used_in_place(tmp_path: Path) -> None:
    """Nothing is copied: no memory of the process but the file's pages, read-only."""
    root = model(1)
    assert align_constants(root) == 2 * NBYTES
    packer.export_library(root, tmp_path / "model.so")
    loaded = runtime.load(tmp_path / "model.so")
    (weights,) = loaded.imported_modules
    result = loaded["first"]().numpy()
    assert np.shares_memory(result, weights.weights["relax.constant_0"].numpy())
    growth, sums, readonly = measured(tmp_path / "model.so")
    assert (sums, readonly) == ([NBYTES // 4, NBYTES // 2], [True, True])
    assert growth < 1.15 * 2 * NBYTES / 2**20


def test_small_constants_stay_and_odd_ones_are_aligned_too(tmp_path: Path) -> None:
    """Each large constant begins at a multiple of 64 bytes; all results stay."""
    program, arrays = Program(), {}
    numbers = np.random.default_rng(1)
    for count in (3, 2048, 5001, 4097, 4096):
        arrays[f"f{count}"] = numbers.integers(0, 99, count, dtype="int8").reshape(1, count)
        code = program.function(f"f{count}", ["x"])
        value = runtime.tensor(arrays[f"f{count}"])
        again, end = code.label(), code.label()
        code.place(again)
        code.jump_if_zero(code.params[0], end)
        code.ret(code.call("vm.builtin.make_tuple", value, value))
        code.place(end)
        code.ret(code.call("vm.builtin.copy", value))
    root = program.executable()
    assert align_constants(root) == 5001 + 4097 + 4096
    packer.export_library(root, tmp_path / "model.so")
    loaded = runtime.load(tmp_path / "model.so")
    for name, array in arrays.items():
        assert np.array_equal(loaded[name](0).numpy(), array)
        assert all(np.array_equal(item.numpy(), array) for item in loaded[name](1))
        aligned = loaded[name](0).numpy().ctypes.data % 64 == 0
        assert aligned
    assert len(loaded.imported_modules) == 3
    assert align_constants(root) == 0


def test_the_option_of_the_command_line(tmp_path: Path, capsys, monkeypatch) -> None:
    """It is refused for TVM's dialect, and its help says why."""
    monkeypatch.chdir(tmp_path)
    packer.export_library(model(1), "model.so")
    assert main(["extract", "model.so", "-o", "parts"]) == 0
    command = ["export", "again.so", "--project", "parts/packer.toml", "--align-constants"]
    assert main([*command, "--format", "tvm-ffi"]) == 1
    assert "TVM does not read a safetensors payload" in capsys.readouterr().err
    assert main(command) == 0
    loaded = runtime.load("again.so")
    assert list(loaded.imported_modules[0].weights) == ["relax.constant_0", "relax.constant_1"]
    assert loaded["second"]().numpy()[7] == 2
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    assert "TVM does not read it" in " ".join(capsys.readouterr().out.split())
