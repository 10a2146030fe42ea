"""OpenCL kernels and tensors for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import runtime
from runtime import Device, DeviceModule, FunctionInfo

DEVICE = Device("opencl", 0)
TAGS = ("blockIdx.x", "threadIdx.x")
SCALE_SOURCE = """
__kernel void scale(__global float *x, float by, int n) {
  int i = get_global_id(0);
  if (i < n) x[i] *= by;
}
"""
SCALE = FunctionInfo("scale", ("handle", "float32", "int32"), TAGS)


def kernels(source: str, *infos: FunctionInfo, fmt: str = "cl") -> DeviceModule:
    """A module of OpenCL C."""
    return DeviceModule("opencl", source, fmt, infos)


def on_device(array: Any) -> runtime.Tensor:
    """A copy on the device."""
    return runtime.tensor(np.asarray(array), DEVICE)
