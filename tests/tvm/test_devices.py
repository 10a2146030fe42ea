"""Models for two devices, from real TVM and to it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import packer
from packer.relax import MACHINE, DataType, Program

from ..support import needs
from ..support.vm_assembler import TWICE, TWICE_SOURCE
from .conftest import TVM_PYTHON, RunScript, read
from .devices import NAMES

SECOND = {"cpu": "cpu:1", "opencl": "opencl:0"}
FLOAT32, UINT8 = DataType(2, 32), DataType(1, 8)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, run_script: RunScript) -> Path:
    """The folder of the models, with the results that TVM had on two CPUs."""
    folder = tmp_path_factory.mktemp("devices")
    run_script(TVM_PYTHON, "make_devices.py", folder)
    return folder


@pytest.mark.parametrize("kind", SECOND)
@pytest.mark.parametrize("name", NAMES)
def test_results_equal_those_of_tvm(
    models: Path, run_script: RunScript, name: str, kind: str
) -> None:
    """On a second CPU and on OpenCL bit by bit; a result stays on the device that made it."""
    if kind == "opencl":
        needs.opencl_device()
    output = models / f"{kind}_{name}.ours"
    library = models / f"{kind}_{name}.so"
    run_script(sys.executable, "run_devices.py", library, SECOND[kind], name, output)
    theirs, ours = read(models / f"{name}.results"), read(output)
    for expected, (_, actual) in zip(theirs, ours, strict=True):
        np.testing.assert_equal(actual, expected)
    places = {"twice": ["cpu:0", {"cpu": "cpu:0", "opencl": "opencl:0"}[kind]]}
    assert [device for device, _ in ours] == places.get(name, ["cpu:0"])


def test_a_program_of_packer_for_two_devices_runs_in_tvm(
    tmp_path: Path, run_script: RunScript
) -> None:
    """Storage of the second device, a tensor with its memory scope, a copy."""
    program = Program()
    main = program.function("main", ["x"])
    storage = main.call("vm.builtin.alloc_storage", MACHINE, (16,), 1, UINT8, "global")
    y = main.call("vm.builtin.alloc_tensor", storage, 0, (4,), FLOAT32, "global")
    main.run("twice", main.call("vm.builtin.to_device", main.params[0], 1, 1, "global"), y, 4)
    main.ret(main.call("vm.builtin.to_device", y, 1, 0, "global"))
    model = program.executable()
    model.import_module(packer.CSourceModule(TWICE_SOURCE, functions={"twice": TWICE}))
    packer.export_library(model, tmp_path / "model.so", format="tvm-ffi")
    printed = run_script(TVM_PYTHON, "run_packed_devices.py", tmp_path / "model.so")
    assert printed.splitlines()[-1] == "0 [0.0, 2.0, 4.0, 6.0]"
