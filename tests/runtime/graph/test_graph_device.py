"""Graphs over several devices: memory, copies and kernels of OpenCL."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import runtime

from ...support import needs
from ...support.graphs import factory, graph, null, op

X = np.arange(6, dtype="float32").reshape(2, 3)
DOUBLE = """
__kernel void twice(__global const float *x, __global float *y) {
  y[get_global_id(0)] = 2 * x[get_global_id(0)];
}
"""
INFO = runtime.FunctionInfo("twice", ("handle", "handle"), ("blockIdx.x", "threadIdx.x"))


@pytest.fixture
def opencl() -> runtime.Device:
    """The first OpenCL device; asked for here, so that collecting tests opens no driver."""
    needs.opencl_device()
    return runtime.Device("opencl")


class Operators(runtime.Module):
    """Host code of a kernel, in Python."""

    def __init__(self) -> None:
        kernels = runtime.DeviceModule("opencl", DOUBLE, "cl", [INFO])
        self.kernel = kernels["twice"]

    def find_function(self, name: str) -> Any:
        """Find it by the kernel's name."""
        return self.launch if name == "twice" else None

    def launch(self, x: runtime.Tensor, y: runtime.Tensor) -> None:
        """One work item per element."""
        self.kernel(x, y, 1, 6)


def two_devices() -> dict[str, Any]:
    """``y = 2 x``, on the device; reshaped there; input and output on the CPU."""
    nodes = [
        null("x"),
        op("up", "__copy", [0]),
        op("twice", "twice", [1]),
        op("flat", "__nop", [2]),
        op("down", "__copy", [3]),
    ]
    fields = graph(nodes, [4, 3], [[2, 3], [2, 3], [2, 3], [6], [6]], [0, 1, 2, 2, 3])
    fields["attrs"]["device_index"] = ["list_int", [1, 4, 4, 4, 1]]
    return fields


def test_a_graph_on_the_one_device_that_is_given(opencl) -> None:
    """Without a plan the whole graph runs on the device; arrays are copied in and out."""
    fields = graph([null("x"), op("y", "twice", [0])], [1])
    executor = factory(fields, {"x": X}, Operators())["default"](opencl)
    executor.run()
    assert executor.get_output(0).device == opencl
    out = np.empty_like(X)
    executor.get_output(0, out)
    assert np.array_equal(out, 2 * X)
    executor.set_input_zero_copy("x", runtime.tensor(X + 1, opencl))
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), 2 * (X + 1))
    with pytest.raises(ValueError, match="expected memory"):
        executor.set_input_zero_copy("x", X)


def test_times_of_a_device(opencl) -> None:
    """Both calls wait until the device is done."""
    executor = factory(two_devices(), {}, Operators())["default"]("cpu", "opencl")
    executor.set_input(x=X)
    assert [row.name for row in executor.profile(2)] == ["up", "twice", "down"]
    assert executor.time_evaluator("run", number=2)().mean > 0


def test_a_device_that_is_not_given() -> None:
    """A tensor that is planned for a device is not put on another one."""
    with pytest.raises(runtime.DeviceError, match="device type 4, expected .* given 'cpu:0'"):
        runtime.graph_executor.create(json.dumps(two_devices()), Operators())


def test_a_device_that_is_not_there() -> None:
    """The driver's error states the missing device."""
    with pytest.raises(runtime.DeviceError, match="opencl:9"):
        runtime.graph_executor.create(json.dumps(two_devices()), Operators(), "opencl:9")
