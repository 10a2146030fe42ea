"""Device modules in libdso: all layouts of the payload, signatures, kernels that run."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
from runtime import DeviceModule, FunctionInfo
from runtime.modules.device import LAYOUTS, Shader
from runtime.serial.stream import Writer

from ...support.dso_script import assert_same, tensor
from ...support.opencl_kernels import SCALE, SCALE_SOURCE, kernels
from ...support.payloads import described

INFOS = [
    FunctionInfo("scale", ("handle", "float32x4", "bool", "int8"), ("blockIdx.x", "threadIdx.x")),
    FunctionInfo("other", (), ("paramWriteAccess:[0]", "tir.use_dyn_shared_memory"), (1, 2)),
    FunctionInfo("odd", ("float8_e4m3fn", "custom[99]32", "void", "handle32x2", "float4_e2m1fnx3")),
]
KEYS = [*LAYOUTS, "hsaco"]


def payload(key: str, data: Any, dialect: str) -> bytes:
    """The bytes of a module of all kernels."""
    writer = Writer(dialect=dialect)
    DeviceModule(key, data, "text", INFOS).save_to_binary(writer)
    return b"".join(bytes(chunk) for chunk in writer.finish())


@functools.cache
def payloads(key: str, dialect: str) -> list[bytes]:
    """One of each layout of a type key."""
    key = {"hsaco": "hip"}.get(key, key)
    sources: dict[str, Any] = {
        "metal": {"scale": "kernel", "other": "k2"},
        "webgpu": {"scale": "fn main"},
        "vulkan": {"scale": Shader(7, b"\3\2\x23\x07" * 5), "other": Shader(0, b"")},
    }
    given = [b"code", b"", *([sources[key]] if key in sources else [])]
    return [payload(key, data, dialect) for data in given]


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
@pytest.mark.parametrize("key", KEYS)
def test_every_layout_is_read(key: str, dialect: str) -> None:
    """At the blob's end and before another entry; written again byte for byte."""
    made = payloads(key, dialect)
    following = b"\4\0\0\0\0\0\0\0_lib"
    said = described(key, made, dialect=dialect)
    assert all(text.startswith({"hsaco": "hip"}.get(key, key)) for text in said)
    described(key, [data + following for data in made], dialect=dialect, is_last=False)
    described(key, [data + b"x" for data in made], dialect=dialect)
    described(key, [data + b"x" for data in made], dialect=dialect, is_last=False)


@pytest.mark.usefixtures("opencl_device")
def test_opencl_kernels_run_in_a_c_program(tmp_path: Path) -> None:
    """Results are Python's bit for bit, and so are the texts of wrong calls."""
    packer.export_library(kernels(SCALE_SOURCE, SCALE), tmp_path / "kernels.so")
    four, two = (tensor(np.array(x, "f4"), "g") for x in ([1, 2.5, -3, 0.1], [1, 2]))
    found = assert_same(
        tmp_path / "kernels.so",
        f"""
        call 0 scale {four} f:3.3 i:4 i:1 i:4
        call 0 scale {four} f:2 i:2 i:2 i:2
        call 0 scale {tensor(np.ones(2, "f4"))} f:2 i:2 i:1 i:2
        call 0 scale {two} f:2 i:2 i:1
        call 0 scale {two} s:x i:2 i:1 i:2
        """,
    )
    assert found[0].startswith("none\ntensor ")
    assert all("Error: scale: " in line for line in found[2:])
