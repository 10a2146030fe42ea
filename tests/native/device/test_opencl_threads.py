"""OpenCL from a library, in threads, with forks, and with missing devices."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from runtime import Device, DeviceError

from ...support.opencl_kernels import DEVICE, SCALE, SCALE_SOURCE, kernels, on_device
from ...support.process import run_python

pytestmark = pytest.mark.usefixtures("opencl_device")


def test_loaded_library_launches(tmp_path: Path) -> None:
    """A module that was stored in a library launches after the load."""
    path = packer.export_library(kernels(SCALE_SOURCE, SCALE), tmp_path / "kernels.so")
    x = on_device(np.ones(4, np.float32))
    runtime.load(path)["scale"](x, 4.0, 4, 1, 4)
    assert x.numpy()[0] == 4


def test_threads_launch_one_kernel() -> None:
    """Threads that launch one kernel with separate arguments do not mix them up."""
    scale = kernels(SCALE_SOURCE, SCALE)["scale"]
    arrays = [on_device(np.ones(64, np.float32)) for _ in range(8)]

    def work(x: runtime.Tensor, by: float) -> None:
        for _ in range(50):
            scale(x, by, 64, 1, 64)
            scale(x, 1 / by, 64, 1, 64)
        scale(x, by, 64, 1, 64)

    threads = [threading.Thread(target=work, args=(x, float(2**i))) for i, x in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [2**i for i in range(8)] == [x.numpy()[63] for x in arrays]


def test_work_is_done_in_order() -> None:
    """Launches and copies of one device happen in the order in which they were asked for."""
    scale = kernels(SCALE_SOURCE, SCALE)["scale"]
    x = on_device(np.ones(1 << 16, np.float32))
    for _ in range(20):
        scale(x, 2.0, 1 << 16, 1 << 10, 64)
    y = runtime.empty((1 << 16,), "float32", DEVICE).copy_from(x)
    scale(x, 0.0, 1 << 16, 1 << 10, 64)
    assert (y.numpy() == 2.0**20).all()
    assert not x.numpy().any()


def test_fork_after_use_is_refused_in_the_child() -> None:
    """A child of a process that used OpenCL raises an error and does not hang."""
    code = """
import json, os, runtime
source = "__kernel void f(int n) {}"
module = runtime.DeviceModule("opencl", source, "cl", [runtime.FunctionInfo("f", ["int32"])])
kernel, x = module["f"], runtime.empty((4,), "float32", runtime.Device("opencl", 0))
kernel(1)
runtime.Device("opencl", 0).sync()  # a thread of the driver that opens a library cannot be forked
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    said = []
    for use in (lambda: kernel(1), x.numpy, lambda: runtime.Device("opencl", 0).sync()):
        try:
            use()
            said.append("nothing")
        except runtime.DeviceError as error:
            said.append(str(error))
    del x, kernel, module
    os.write(writer, json.dumps(said).encode())
    os._exit(0)
os.close(writer)
os.waitpid(child, 0)
kernel(2)
runtime.Device("opencl", 0).sync()
print(os.read(reader, 10000).decode())
"""
    said = run_python(code)
    assert len(said) == 3
    assert all(text.startswith("opencl:0: OpenCL does not work after a fork") for text in said)


def test_child_may_use_a_driver_that_its_parent_did_not() -> None:
    """A child that was forked before OpenCL was used has a separate driver state."""
    code = """
import os, runtime
module = runtime.DeviceModule("opencl", "__kernel void f() {}", "cl", [runtime.FunctionInfo("f")])
kernel = module["f"]
child = os.fork()
if child == 0:
    kernel()
    runtime.Device("opencl", 0).sync()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code) == 7


def test_device_that_is_not_there() -> None:
    """A wrong index is refused with a list of the devices."""
    with pytest.raises(DeviceError, match=r"opencl:99: no such device, found \d+: opencl:0 '"):
        runtime.empty((1,), "float32", Device("opencl", 99))


def test_memory_beyond_the_device() -> None:
    """An allocation that the device refuses names size, device and code."""
    with pytest.raises(DeviceError, match=f"allocating {2**50} bytes on '.*CL_INVALID_BUFFER") as e:
        runtime.empty((2**50,), "int8", DEVICE)
    assert (e.value.device, e.value.code) == ("opencl:0", -61)
