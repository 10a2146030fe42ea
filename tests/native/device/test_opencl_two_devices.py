"""Two OpenCL devices of two vendors in one process.

Intel's runtime for CPUs, from PyPI, takes SPIR-V; it is used together with PoCL. CI has both;
elsewhere these tests need ``pip install --group opencl``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import pytest

from ...support import needs
from .spirv import FILL, compile_spirv

# Prints the result of each step as JSON; for a failed step, its error.
STEPS = '''
import json, sys
import numpy as np
import runtime
from runtime import Device, DeviceModule, FunctionInfo

steps = {}
def step(work):
    try:
        steps[work.__name__] = work()
    except Exception as error:
        steps[work.__name__] = f"{type(error).__name__}: {error}"

TAGS = ("blockIdx.x", "threadIdx.x")
devices = [Device("opencl", 0), Device("opencl", 1)]
source = """
__kernel void scale(__global float *x, float by) { x[get_global_id(0)] *= by; }
__kernel void add(__global float *x, __global float *y) { x[get_global_id(0)] += y[0]; }
__kernel void nothing(int n) {}
"""
module = DeviceModule("opencl", source, "cl", [
    FunctionInfo("scale", ("handle", "float32"), TAGS),
    FunctionInfo("add", ("handle", "handle"), TAGS),
    FunctionInfo("nothing", ("int32",), ()),
])
spirv = DeviceModule("opencl", open(sys.argv[1], "rb").read(), "spirv",
                     [FunctionInfo("fill", ("handle", "int32"), TAGS)])
x, y = (runtime.tensor(np.arange(1, 5, dtype=np.float32), device) for device in devices)

@step
def names():
    return [device.name for device in devices]
@step
def each_device_runs_its_own_build():
    module["scale"](x, 2.0, 1, 4)
    module["scale"](y, 3.0, 1, 4)
    return [x.numpy().tolist(), y.numpy().tolist()]
@step
def arguments_on_two_devices():
    module["add"](x, y, 1, 4)
@step
def copies_between_devices():
    z = y.to(devices[0])
    module["add"](z, x, 1, 4)
    x.copy_from(y)
    return [str(z.device), z.numpy().tolist(), x.numpy().tolist()]
@step
def large_copy_between_devices():
    big = np.random.default_rng(1).integers(0, 255, (9 << 20) + 5, np.uint8)
    return bool((runtime.tensor(big, devices[0]).to(devices[1]).numpy() == big).all())
@step
def spirv_on_the_first():
    filled = runtime.tensor(np.zeros(4, np.int32), devices[0])
    spirv["fill"](filled, 7, 1, 3)
    return filled.numpy().tolist()
@step
def spirv_on_the_second():
    spirv["fill"](runtime.tensor(np.zeros(4, np.int32), devices[1]), 7, 1, 3)
@step
def no_such_device():
    runtime.get_global_func("__tvm_set_device")(4, 2)
@step
def without_tensors_the_current_device_counts():
    runtime.get_global_func("__tvm_set_device")(4, 1)
    DeviceModule("opencl", b"no binary", "clbin", [FunctionInfo("f")])["f"]()
print(json.dumps(steps))
'''


def intel_folder() -> Path:
    """Return the folder of Intel's runtime."""
    try:
        found = files("intel-opencl-rt") or []
    except PackageNotFoundError:
        needs.package("intel-opencl-rt", "opencl")
    return next(Path(f.locate()).resolve().parent for f in found if f.name == "libOpenCL.so.1")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the output of each step, in a process that sees both drivers."""
    folder = intel_folder()
    code = tmp_path_factory.mktemp("spirv") / "fill.spv"
    code.write_bytes(compile_spirv(FILL))
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "OCL_ICD_FILENAMES": str(folder / "libintelocl.so"),
    }
    run = subprocess.run(
        [sys.executable, "-c", STEPS, str(code)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


def test_module_is_built_for_each_device(steps: dict[str, Any]) -> None:
    """One module runs on both devices, each with its tensor."""
    assert steps["each_device_runs_its_own_build"] == [[2, 4, 6, 8], [3, 6, 9, 12]]


def test_arguments_on_two_devices_are_refused(steps: dict[str, Any]) -> None:
    """Tensors of two devices in one launch are refused, naming both arguments."""
    assert steps["arguments_on_two_devices"] == (
        "ValueError: add: argument 2: expected a tensor on opencl:0, like argument 1, "
        "found one on opencl:1; copy it there"
    )


def test_copies_go_between_devices(steps: dict[str, Any]) -> None:
    """Copies between devices use the host, and wait for earlier launches."""
    assert steps["copies_between_devices"] == ["opencl:0", [5, 8, 11, 14], [3, 6, 9, 12]]
    assert steps["large_copy_between_devices"] is True


def test_spirv_runs_where_the_device_takes_it(steps: dict[str, Any]) -> None:
    """SPIR-V of llvmlite runs on one device; the other device refuses it."""
    assert steps["spirv_on_the_first"] == [7, 7, 7, 0]
    assert steps["spirv_on_the_second"].startswith(
        f"DeviceError: opencl:1: '{steps['names'][1]}': SPIR-V is unsupported"
    )


def test_device_of_a_launch_without_tensors(steps: dict[str, Any]) -> None:
    """Without tensors a kernel runs on the device that `__tvm_set_device` chose."""
    assert steps["without_tensors_the_current_device_counts"].startswith(
        "DeviceError: opencl:1: 'pthread"
    )
    assert steps["no_such_device"].startswith("DeviceError: opencl:2: no such device, found 2:")
