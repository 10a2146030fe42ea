"""OpenCL code: source, SPIR-V and binaries, built or refused."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from runtime import DeviceError, DeviceModule, FunctionInfo

from ...support.opencl_kernels import DEVICE, SCALE, SCALE_SOURCE, TAGS, kernels, on_device
from .opencl_binary import build_binary
from .spirv import FILL, compile_spirv

pytestmark = pytest.mark.usefixtures("opencl_device")


def test_kernel_that_the_code_lacks_is_named() -> None:
    """An unknown name is refused with a list of the names in the code."""
    module = kernels(SCALE_SOURCE, FunctionInfo("scales", SCALE.arg_types, TAGS))
    with pytest.raises(
        DeviceError, match="kernel 'scales': the code does not contain this kernel.*scale"
    ):
        module["scales"](None, 1.0, 1, 1, 1)


def test_build_log_is_in_the_error() -> None:
    """Source that does not compile gives the compiler's own words, at each launch."""
    kernel = kernels("__kernel void f() { undeclared = 1; }", FunctionInfo("f"))["f"]
    for _ in range(2):
        with pytest.raises(
            DeviceError, match="cannot build code of format cl: CL_BUILD_PROGRAM_FAILURE"
        ) as e:
            kernel()
        assert "undeclared" in str(e.value)
        assert (e.value.device, e.value.code) == ("opencl:0", -11)


@pytest.mark.parametrize(
    ("code", "fmt", "message"),
    [
        (b"ptx", "ptx", "unsupported code format 'ptx', expected cl .*, clbin or xclbin"),
        (b"x", "", "unsupported code format '', expected cl"),
        (b"", "cl", "the code is empty"),
        (b"no binary", "clbin", r"rejected code of format clbin: CL_INVALID_BINARY \(code -42\)"),
        (b"no binary", "xclbin", "rejected code of format xclbin: CL_INVALID_BINARY"),
        (b"no words", "spirv", "invalid or truncated code of format spirv"),
        (b"\x03\x02\x23\x07", "spv", "invalid or truncated code"),
    ],
)
def test_code_of_another_kind_is_refused(code: bytes, fmt: str, message: str) -> None:
    """Code that does not match its format is refused by kind."""
    kernel = DeviceModule("opencl", code, fmt, [FunctionInfo("f")])["f"]
    with pytest.raises(DeviceError, match=message):
        kernel()


@pytest.mark.parametrize("cut", [4, 1, 100])
def test_spirv_that_is_cut_short_is_refused(cut: int) -> None:
    """SPIR-V that lacks its end never reaches a driver, which might end the process."""
    code = compile_spirv(FILL)[:-cut]
    info = FunctionInfo("fill", ("handle", "int32"), TAGS)
    with pytest.raises(DeviceError, match="invalid or truncated code"):
        DeviceModule("opencl", code, "spirv", [info])["fill"](None, 1, 1, 1)


def test_spirv_runs_or_is_refused_by_name() -> None:
    """A device accepts SPIR-V, or the error lists its formats, as for Debian's PoCL."""
    info = FunctionInfo("fill", ("handle", "int32"), TAGS)
    kernel = DeviceModule("opencl", compile_spirv(FILL), "spirv", [info])["fill"]
    x = on_device(np.zeros(64, np.int32))
    try:
        kernel(x, 7, 4, 8)
    except DeviceError as error:
        assert f"'{DEVICE.name}': SPIR-V is unsupported" in str(error)
        assert "expected OpenCL C source (cl)" in str(error)
    else:
        assert x.numpy().tolist() == [7] * 32 + [0] * 32


def test_binary_runs() -> None:
    """A binary that the driver made is taken back."""
    module = DeviceModule("opencl", build_binary(SCALE_SOURCE), "clbin", [SCALE])
    x = on_device(np.ones(4, np.float32))
    module["scale"](x, 4.0, 4, 1, 4)
    assert x.numpy().tolist() == [4, 4, 4, 4]


def test_function_keeps_its_code() -> None:
    """A kernel that outlives every name of its module still builds and runs."""
    scale = kernels(SCALE_SOURCE, SCALE)["scale"]
    gc.collect()
    x = on_device(np.ones(4, np.float32))
    scale(x, 4.0, 4, 1, 4)
    assert x.numpy()[3] == 4


def test_module_is_freed_with_its_last_function() -> None:
    """No reference points back: a module and its code are freed without the collector."""
    module = kernels(SCALE_SOURCE, SCALE)
    scale, gone = module["scale"], weakref.ref(module)
    scale(on_device(np.ones(1, np.float32)), 1.0, 1, 1, 1)
    del module
    assert gone() is not None
    del scale
    assert gone() is None
