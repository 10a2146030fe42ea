"""OpenCL source gets the lines by which TVM splits it; code that a blob contained stays."""

from __future__ import annotations

import re

import numpy as np
import pytest

import packer
import runtime
from runtime.registry import find_loader

from ...support import needs
from ...support.opencl_kernels import SCALE, SCALE_SOURCE, TAGS, kernels, on_device

SHARED = """\
// Function: by and more are used by both kernels
static float more(float x) { return x + 1; }
__kernel void up(__global float *x) { x[get_global_id(0)] = more(x[get_global_id(0)]); }
__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2 * more(0); }
"""
BOTH = [runtime.FunctionInfo(name, ("handle",), TAGS) for name in ("up", "twice")]


def split(source: str) -> dict[str, str]:
    """Split source into kernels as TVM does."""
    _, *parts = re.split(r"// Function: ", source)
    return dict(part.split("\n", 1) for part in parts)


def reloaded(module: runtime.Module, path) -> runtime.DeviceModule:
    """The kernels of a library."""
    found = runtime.load(packer.export_library(module, path))
    assert isinstance(found, runtime.DeviceModule)
    return found


def test_one_kernel_is_all_of_the_source(tmp_path) -> None:
    """The lines of the source keep their numbers in the log of a driver."""
    module = kernels(SCALE_SOURCE, SCALE)
    source = reloaded(module, tmp_path / "m.so").get_source()
    assert source == f"// Function: scale\n#line 1\n{SCALE_SOURCE}"
    assert split(source).keys() == {"scale"}
    assert module.get_source() == SCALE_SOURCE


def test_each_part_and_the_whole_are_programs(tmp_path) -> None:
    """TVM compiles each part alone, this runtime the whole; both have what the kernels share."""
    whole = reloaded(kernels(SHARED, *BOTH), tmp_path / "m.so")
    parts = split(whole.get_source())
    assert parts.keys() == {"up", "twice"}
    needs.opencl_device()
    for info in BOTH:
        alone = kernels(parts[info.name], info)
        for module in (whole, alone):
            x = on_device(np.full(4, 3, "float32"))
            module[info.name](x, 1, 4)
            assert set(x.numpy()) == {4.0 if info.name == "up" else 6.0}


@pytest.mark.parametrize("format", ["tvm", "tvm-ffi"])
def test_a_payload_that_was_read_is_written_unchanged(tmp_path, format) -> None:
    """Without the lines, and with them; also by an older packer, or by TVM."""
    for source in (SCALE_SOURCE, f"// Function: scale\n{SCALE_SOURCE}"):
        writer = runtime.Writer(dialect=format)
        module = runtime.DeviceModule("opencl", source, "cl", [SCALE])
        module._is_read = True
        module.save_to_binary(writer)
        payload = b"".join(map(bytes, writer.finish()))
        assert payload.endswith(source.encode())
        read = find_loader("opencl")(runtime.Reader(payload, dialect=format))
        again = runtime.Writer(dialect=format)
        read.save_to_binary(again)
        assert b"".join(map(bytes, again.finish())) == payload
        assert read.get_source() == source


@pytest.mark.parametrize(
    ("key", "fmt", "code"),
    [
        ("opencl", "cl", f"// Function: scale\n{SCALE_SOURCE}"),
        ("opencl", "spirv", "\3\2#\7"),
        ("cuda", "cuda", "__global__ void scale() {}"),
    ],
)
def test_other_code_stays(tmp_path, key, fmt, code) -> None:
    """Source that has the lines, binaries, other devices."""
    module = runtime.DeviceModule(key, code, fmt, [SCALE])
    assert bytes(reloaded(module, tmp_path / "m.so").data) == code.encode()


def test_source_without_kernels_stays(tmp_path) -> None:
    """Nothing is known to be split."""
    module = runtime.DeviceModule("opencl", SCALE_SOURCE, "cl", [])
    assert reloaded(module, tmp_path / "m.so").get_source() == SCALE_SOURCE
