"""Host and device modules for exports."""

from __future__ import annotations

import packer
import runtime

ADD = "long add(long a, long b) { return a + b; }"
ADD_DECLARED = {"add": "long(long a, long b)"}
MUL = "define i64 @mul(i64 %a, i64 %b) { %c = mul i64 %a, %b  ret i64 %c }"


def host() -> packer.CSourceModule:
    """A host module with one function."""
    return packer.CSourceModule(ADD, functions=ADD_DECLARED)


def device(data: bytes = b".version 7.0") -> runtime.DeviceModule:
    """A CUDA module that is only carried."""
    info = runtime.FunctionInfo("k", ["handle", "int32"], ["blockIdx.x"])
    return runtime.DeviceModule("cuda", data, "ptx", [info])
