"""CUDA modules with a FAKE driver: launches, copies, contexts."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import packer
import runtime

from ...support.cuda import DATA, run_with_fake
from .cuda_launch import LAUNCH, PARAMS, PTX, TAGS, Fake


def test_launch_passes_extents_and_arguments(launch: Fake) -> None:
    """Each tag's integer sets its extent, each argument's bytes its parameter."""
    tags = "threadIdx.y blockIdx.z blockIdx.x tir.use_dyn_shared_memory threadIdx.x"
    _, log = launch(PTX, tags, 3, 7, 5, 256, 2)
    (line,) = [line for line in log if line.startswith("launch")]
    head, _, arguments = line.partition(": ")
    assert head == "launch scale 5 1 7 2 3 1 shared 256 in 1100"
    pointer, by, n = arguments.split()
    assert len(bytes.fromhex(pointer)) == 8
    assert struct.pack("<f", 2.5).hex() == by
    assert struct.pack("<i", 8).hex() == n


@pytest.mark.parametrize("extents", [(0, 4), (2, 0), (0, 0)])
def test_extent_of_zero_launches_nothing(launch: Fake, extents: tuple[int, int]) -> None:
    """An extent of 0 launches nothing; the driver is not called."""
    printed, log = launch(PTX, TAGS, *extents)
    assert printed == ["launched"]
    assert any(line.startswith("load") for line in log)
    assert not any(line.startswith("launch") for line in log)


def test_large_shared_memory_is_opted_in(launch: Fake) -> None:
    """A kernel that takes dynamic shared memory may have all that the device opts in for."""
    tags = f"{TAGS} tir.use_dyn_shared_memory"
    _, log = launch(PTX, tags, 1, 1, 100_352)
    assert "set scale 8 100352" in log
    (printed,), log = launch(PTX, tags, 1, 1, 100_353)
    assert "expected at most 100352 bytes of dynamic shared memory on 'FAKE 0'" in printed
    assert not any(line.startswith("launch") for line in log)


@pytest.mark.parametrize(
    ("tags", "extents", "message"),
    [
        ("blockIdx.x blockIdx.y", (0, 65536), "a blockIdx.y of at most 65535 on 'FAKE 0'"),
        ("blockIdx.y", (65536,), "expected a blockIdx.y of at most 65535 on 'FAKE 0', found 65536"),
        ("threadIdx.z", (65,), "expected a threadIdx.z of at most 64"),
        ("threadIdx.x threadIdx.y", (32, 17), "a block of at most 512 threads on 'FAKE 0'"),
        ("threadIdx.x threadIdx.y threadIdx.z", (1024, 1024, 64), "found one of 1024 x 1024 x 64"),
    ],
)
def test_extents_beyond_the_device_are_refused(
    launch: Fake, tags: str, extents: tuple[int, ...], message: str
) -> None:
    """A grid or a block that the device cannot run is refused with the limit."""
    (printed,), log = launch(PTX, tags, *extents)
    assert "cuda:0: kernel 'scale': " in printed
    assert message in printed
    assert not any(line.startswith("launch") for line in log)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("8 4", "2 arguments in the code, 3 in the signature"),
        ("8 4 4 4", "4 arguments in the code, 3 in the signature"),
        ("8 8 4", "argument 2: 8 bytes in the code, 4 in the signature"),
    ],
)
def test_inconsistent_signature_is_refused(launch: Fake, params: str, message: str) -> None:
    """The signature is compared with the parameters that the driver reports."""
    (printed,), _ = launch(PTX, params=params)
    assert message in printed


def test_unknown_kernel_is_refused(fake_driver: Path) -> None:
    """The error of an unknown name lists the names in the code."""
    code = LAUNCH.replace('FunctionInfo("scale"', 'FunctionInfo("sale"').replace(
        '["scale"]', '["sale"]'
    )
    (printed,), _ = run_with_fake(fake_driver, code, PTX, TAGS, 1, 1, devices="80", params=PARAMS)
    assert "kernel 'sale': the code does not contain this kernel; it contains: scale" in printed


COPIES = """
import array
import runtime
from runtime import Device

first, second = Device("cuda", 0), Device("cuda", 1)
x = runtime.tensor(array.array("h", range(6)), first)
y = runtime.empty((6,), "int16", first)
y.copy_from(x)
z = y.to(second)
print(memoryview(z.to(Device("cpu", 0))).tolist(), z.device, second.name)
"""


def test_copies_go_the_way_that_fits(fake_driver: Path) -> None:
    """Copies run from and to the CPU, within a device, and between two."""
    printed, log = run_with_fake(fake_driver, COPIES, devices="80 90")
    assert printed == ["[0, 1, 2, 3, 4, 5] cuda:1 FAKE 1"]
    assert log == ["cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2", "cuMemcpyPeer", "cuMemcpyDtoH_v2"]


def test_kernel_runs_on_the_device_of_its_tensors(fake_driver: Path) -> None:
    """Code is loaded for each device separately, in that device's primary context."""
    code = LAUNCH.replace(
        'print("launched")', 'module["scale"](x.to(Device("cuda", 1)), 1, 8, 1, 1)'
    )
    args = (DATA / "scale.fatbin", TAGS, 1, 1)
    _, log = run_with_fake(fake_driver, code, *args, devices="80 90", params=PARAMS)
    loads = [line for line in log if line.startswith("load")]
    assert loads == ["load cubin 0x6005004 in 1100", "load cubin 0x6005a04 in 1101"]
    assert [line.split()[11] for line in log if line.startswith("launch")] == ["1100:", "1101:"]


def test_context_of_others_is_left_as_it_was(fake_driver: Path) -> None:
    """A context that another library made current is current again after each of our calls."""
    code = LAUNCH.replace(
        "try:",
        "import ctypes\n"
        'driver = ctypes.CDLL("libcuda.so.1")\n'
        "driver.cuCtxPushCurrent_v2(ctypes.c_void_p(7))\n"
        "try:",
    )
    code += (
        "current = ctypes.c_void_p()\n"
        "driver.cuCtxGetCurrent(ctypes.byref(current))\n"
        "print(current.value)\n"
    )
    printed, _ = run_with_fake(fake_driver, code, PTX, TAGS, 1, 1, devices="80", params=PARAMS)
    assert printed == ["launched", "7"]


def test_threads_load_once(fake_driver: Path) -> None:
    """Threads that launch at the same time share the code that the first of them loads."""
    code = LAUNCH.replace(
        'print("launched")',
        "import threading\n"
        '    work = lambda: [module["scale"](x, 2.5, 8, 1, 1) for _ in range(50)]\n'
        "    threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "    [thread.start() for thread in threads] + [thread.join() for thread in threads]\n",
    )
    code = code.replace('    module["scale"](x, 2.5, 8, *map(int, extents))\n', "")
    _, log = run_with_fake(fake_driver, code, PTX, TAGS, devices="80", params=PARAMS)
    assert [line.split()[0] for line in log] == [
        "cuMemcpyHtoD_v2", "load", *["launch"] * 400, "unload"
    ]  # fmt: skip


HOST = """
#include "dso_packer.h"
dso_status scale_from(DLTensor *x, int64_t offset) {
  DLTensor view = *x;
  view.byte_offset += (uint64_t)offset;
  return dso_call("scale", NULL, dso_tensor(&view), dso_float(0.5), dso_int(3), dso_int(1),
                  dso_int(4));
}
"""
LAUNCH_FROM_HOST = """
import array, sys
import runtime
model = runtime.load(sys.argv[1])
x = runtime.tensor(array.array("f", range(8)), runtime.Device("cuda", 0))
for offset in (0, 16):
    model["scale_from"](x, offset)
try:
    model["scale_from"](runtime.empty((8,), "float32"), 0)
except ValueError as error:
    print(error)
"""


def test_host_code_launches(fake_driver: Path, tmp_path: Path) -> None:
    """Host code finds the kernel of its import; a view's offset counts; an error passes through."""
    declaration = "dso_status(DLTensor *x, int64_t offset)"
    host = packer.CSourceModule(HOST, functions={"scale_from": declaration})
    info = runtime.FunctionInfo("scale", ("handle", "float32", "int32"), TAGS.split())
    host.import_module(runtime.DeviceModule("cuda", PTX.read_bytes(), "ptx", [info]))
    path = packer.export_library(host, tmp_path / "host.so")
    printed, log = run_with_fake(fake_driver, LAUNCH_FROM_HOST, path, devices="80", params=PARAMS)
    launches = [line.split() for line in log if line.startswith("launch")]
    first, second = (int.from_bytes(bytes.fromhex(words[12]), "little") for words in launches)
    assert second - first == 16
    assert [words[1:12] for words in launches] == [
        ["scale", "1", "1", "1", "4", "1", "1", "shared", "0", "in", "1100:"]
    ] * 2  # fmt: skip
    (error,) = printed
    assert error.startswith("scale: argument 1: expected a tensor on cuda, found one on cpu:0")
