"""Kernel: launches of a small OpenCL kernel from Python, from host code and from plain C."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from measure import Case, Launcher, Row, Sample, interleave, is_installed
from table import Table

import packer
import runtime

ROUNDS = 25
# One sample is this number of launches, and the wait for the last.
LAUNCHES = 500
SOURCE = """
__kernel void scale(__global float *x, float by, int n) {
  int i = get_global_id(0);
  if (i < n) x[i] *= by;
}
"""
HERE = Path(__file__).parent
TITLE = "launch kernel(buffer, float, int) on one block of 64"
AIMS = (
    "aim: from Python at most 1.2 times plain C, and 1 us; from host code 1.0 times, and 0.3 us",
)
Timed = Callable[[], None]


def tables(folder: Path, _launch: Launcher) -> list[Table]:
    """Measure launches on the runtime's first OpenCL device."""
    device = runtime.Device("opencl", 0)
    if not device.exist:
        absent = "no OpenCL device is here"
        return [Table(TITLE, [Row("plain C (reference)", (), absent)], "us")]
    library = runtime.load(_build(folder))
    x = runtime.tensor(np.ones(64, np.float32), device)
    works = {
        "plain C (reference)": _plain(folder),
        "runtime, from host code": _from_host(library, x, device),
        "runtime, from Python": _from_python(library, x, device),
    }
    if is_installed("pyopencl"):
        works["pyopencl"] = _pyopencl()
    # A CPU device works on the same cores: only the thread's own time is the time of the launch.
    clocks = {"time until all are done": perf_counter, "time of the launching thread": thread_time}
    return [
        Table(
            f"{TITLE}, {device.name}: {what}",
            interleave([Case(name, _timed(work, clock)) for name, work in works.items()], ROUNDS),
            "us",
            notes=AIMS,
        )
        for what, clock in clocks.items()
    ]


def _timed(work: Timed, clock: Callable[[], float]) -> Callable[[], Sample]:
    def measure() -> Sample:
        start = clock()
        work()
        return {"seconds": (clock() - start) / LAUNCHES}

    return measure


def _build(folder: Path) -> Path:
    info = runtime.FunctionInfo(
        "scale", ("handle", "float32", "int32"), ("blockIdx.x", "threadIdx.x")
    )
    host = packer.CSourceModule(HERE / "kernel_host.c")
    host.import_module(runtime.DeviceModule("opencl", SOURCE, "cl", [info]))
    return packer.export_library(host, folder / "kernel.so")


def _plain(folder: Path) -> Timed:
    path = folder / "opencl.so"
    options = ["-O2", "-fPIC", "-shared", "-o", path, HERE / "opencl.c", "-l:libOpenCL.so.1"]
    subprocess.run(["gcc", *options], check=True)
    library = ctypes.CDLL(str(path))
    library.launch.argtypes = [ctypes.c_int, ctypes.c_float, ctypes.c_int32]
    if code := library.open_kernel(SOURCE.encode(), b"scale", ctypes.c_size_t(256)):
        raise RuntimeError(f"plain OpenCL: code {code}")
    return lambda: _checked(library.launch(LAUNCHES, 1.0, 64))


def _checked(code: int) -> None:
    if code:
        raise RuntimeError(f"plain OpenCL: code {code}")


def _from_host(library: runtime.Module, x: runtime.Tensor, device: runtime.Device) -> Timed:
    host = library["host"]

    def work() -> None:
        host(LAUNCHES, x, 1.0, 64)
        device.sync()

    return work


def _from_python(library: runtime.Module, x: runtime.Tensor, device: runtime.Device) -> Timed:
    scale = library["scale"]

    def work() -> None:
        for _ in range(LAUNCHES):
            scale(x, 1.0, 64, 1, 64)
        device.sync()

    return work


def _pyopencl() -> Timed:
    import pyopencl as cl

    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "scale")
    x: Any = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)

    def work() -> None:
        for _ in range(LAUNCHES):
            kernel(queue, (64,), (64,), x, np.float32(1), np.int32(64))
        queue.finish()

    return work
