"""Host code launches kernels of modules that its library imports, on a real OpenCL device."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from runtime import Device, DeviceError, DeviceModule, FunctionInfo
from runtime.modules.vm import load
from runtime.relax.vm import VirtualMachine
from runtime.serial.stream import Reader

from ...support.paths import C_SOURCES
from ...support.vm_assembler import FLOAT, Code, Program, call, const, imm, packed, reg, ret

pytestmark = pytest.mark.usefixtures("opencl_device")

HOST = C_SOURCES / "kernel_host.c"
DEVICE = Device("opencl", 0)
SOURCE = """
__kernel void scale(__global float *x, float by, int n) {
  int i = get_global_id(0);
  if (i < n) x[i] *= by;
}
"""
SCALE = FunctionInfo("scale", ("handle", "float32", "int32"), ("blockIdx.x", "threadIdx.x"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of the host code that carries the kernel."""
    host = packer.CSourceModule(HOST, functions=["packed_host"])
    host.import_module(DeviceModule("opencl", SOURCE, "cl", [SCALE]))
    return packer.export_library(host, tmp_path_factory.mktemp("host") / "host.so")


@pytest.fixture
def library(path: Path) -> runtime.Module:
    """The library, loaded."""
    return runtime.load(path)


@pytest.fixture
def x() -> runtime.Tensor:
    """Ones on the device."""
    return runtime.tensor(np.ones(200, np.float32), DEVICE)


def test_host_code_launches_a_kernel_of_its_import(library, x) -> None:
    """The kernel of the imported module runs, found by name."""
    library["host"](x, 4.0)
    library["host"](x, 0.5)
    np.testing.assert_array_equal(np.full(200, 2, np.float32), x.numpy())


def test_packed_host_code_launches(library, x) -> None:
    """Host code of TVM's older ABI sets the device, and passes the tensor's handle."""
    library["packed_host"](x)
    np.testing.assert_array_equal(np.r_[np.full(64, 3), np.ones(136)], x.numpy())


def test_kernel_is_an_argument(library, x) -> None:
    """A kernel given to host code as a function is launched as it is."""
    library["apply"](library["scale"], x, 6.0, 200, 4, 64)
    assert x.numpy()[199] == 6


def test_host_code_launches_no_blocks(library, x) -> None:
    """An extent of 0 that host code passes launches nothing."""
    library["apply"](library["scale"], x, 6.0, 200, 0, 64)
    library["apply"](library["scale"], x, 6.0, 200, 4, 0)
    assert (x.numpy() == 1).all()


def test_host_code_launches_over_an_empty_tensor(library) -> None:
    """Host code that computes its blocks from the number of elements may find none."""
    empty = runtime.empty((0,), "float32", DEVICE)
    library["host"](empty, 4.0)
    assert empty.numpy().tolist() == []


@pytest.mark.parametrize(("blocks", "expected"), [(0, 1.0), (1, 3.0)])
def test_machine_launches_no_blocks(x, blocks: int, expected: float) -> None:
    """Bytecode that launches a kernel with an extent of 0 leaves the tensor as it was."""
    launch = call(1, 1, reg(0), const(0), imm(200), imm(blocks), imm(200))
    main = Code("main", ["x"], [launch, ret(0)], 2)
    executable = load(Reader(Program([main, packed("scale")], [(FLOAT, 3.0)]).payload()))
    executable.import_module(DeviceModule("opencl", SOURCE, "cl", [SCALE]))
    result = VirtualMachine(executable, DEVICE)["main"](x)
    assert (result.numpy() == expected).all()


def test_launch_enters_no_python(library, x) -> None:
    """A thread that Python never saw launches while another keeps the GIL."""
    library["host"](x, 1.0)  # from here on the name is remembered
    library["scale_in_thread"](x)
    assert x.numpy()[0] == 5


def test_view_is_passed_with_its_offset(library, x) -> None:
    """A tensor's byte_offset counts, where the device can begin a buffer there."""
    library["scale_view"](x, 512, 4)
    expected = np.ones(200, np.float32)
    expected[128:132] = 2
    np.testing.assert_array_equal(expected, x.numpy())


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (4, "expected a byte_offset that is a multiple of .*, found 0x4; copy the view first"),
        (1 << 20, "its byte_offset 0x100000 is beyond its buffer of 800 bytes"),
    ],
)
def test_view_elsewhere_is_refused(library, x, offset: int, message: str) -> None:
    """An offset that the device cannot begin a buffer at, or beyond the buffer, is refused."""
    with pytest.raises(ValueError, match=f"scale: argument 1: {message}"):
        library["scale_view"](x, offset, 4)


def test_handle_is_passed_as_it_is(library, x) -> None:
    """A handle without a tensor launches on the device whose memory it is."""
    library["scale_handle"](x, 0)
    assert x.numpy()[0] == 2


def test_pointer_that_is_not_memory_is_refused(library, x) -> None:
    """A stray pointer is refused before a driver follows it."""
    with pytest.raises(ValueError, match="expected memory that this runtime allocated on opencl"):
        library["scale_handle"](x, 1)


def test_array_of_the_host_is_refused(library) -> None:
    """Host code that is given an array on the CPU cannot launch with it; the error arrives."""
    with pytest.raises(ValueError, match="scale: argument 1: expected a tensor on opencl"):
        library["host"](np.ones(4, np.float32), 2.0)


def test_error_of_a_driver_arrives(library, x) -> None:
    """The driver's refusal passes through host code, with device and code."""
    with pytest.raises(DeviceError, match="expected a threadIdx.x of at most") as caught:
        library["apply"](library["scale"], x, 1.0, 1, 1, 2**31 - 1)
    assert caught.value.device == "opencl:0"


def test_library_closes_when_dropped(path: Path, tmp_path: Path, x) -> None:
    """A looked-up function keeps nothing alive: the last reference closes library and kernels."""
    copy = tmp_path / "copy.so"
    copy.write_bytes(path.read_bytes())
    library = runtime.load(copy)
    library["host"](x, 2.0)
    DEVICE.sync()
    gone = weakref.ref(library)
    del library
    gc.collect()
    assert gone() is None
    assert str(copy) not in Path("/proc/self/maps").read_text()


def test_threads_launch_through_one_library(library) -> None:
    """Threads share library, kernel and queue, each with a separate tensor."""
    arrays = [runtime.tensor(np.ones(64, np.float32), DEVICE) for _ in range(8)]

    def work(host: Callable[..., object], x: runtime.Tensor, by: float) -> None:
        for _ in range(100):
            host(x, by)
            host(x, 1 / by)
        host(x, by)

    threads = [
        threading.Thread(target=work, args=(library["host"], x, 2.0**i))
        for i, x in enumerate(arrays)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [x.numpy()[0] for x in arrays] == [2**i for i in range(8)]
