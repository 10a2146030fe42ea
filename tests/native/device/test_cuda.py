"""CUDA kernels on a real GPU, with NVIDIA's driver; skipped with a reason if there is none."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.inspect.device_query import query_devices
from runtime import Device, DeviceError, DeviceModule, FunctionInfo

from ...support import needs
from ...support.cuda import DATA, compile_ptx
from ...support.process import run_python

FOUND = query_devices("cuda")
needs.hardware(bool(FOUND.get("devices")), "a CUDA device")
DEVICE = Device("cuda", 0)
TAGS = ("blockIdx.x", "threadIdx.x")
SHARED = "tir.use_dyn_shared_memory"
SCALE = FunctionInfo("scale", ("handle", "float32", "int32"), TAGS)
# void turn(int *x): x reversed within a block, in dynamic shared memory; the last thread writes the
# size of that memory (%dynamic_smem_size).
TURN = """
@room = external addrspace(3) global [0 x i32], align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()
define ptx_kernel void @turn(ptr addrspace(1) %x, i32 %step) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %count = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %place = getelementptr i32, ptr addrspace(1) %x, i32 %thread
  %value = load i32, ptr addrspace(1) %place
  %own = mul i32 %thread, %step
  %slot = getelementptr [0 x i32], ptr addrspace(3) @room, i32 0, i32 %own
  store i32 %value, ptr addrspace(3) %slot
  call void @llvm.nvvm.barrier0()
  %last = sub i32 %count, 1
  %other = sub i32 %last, %thread
  %there = mul i32 %other, %step
  %from = getelementptr [0 x i32], ptr addrspace(3) @room, i32 0, i32 %there
  %turned = load i32, ptr addrspace(3) %from
  store i32 %turned, ptr addrspace(1) %place
  ret void
}
"""


def architecture() -> str:
    """Return the capability of the device, as ``"90"``."""
    return str(FOUND["devices"][0]["architecture"]).removeprefix("sm_")


def check_scale(module: runtime.Module) -> None:
    """The module's kernel computes."""
    x = runtime.tensor(np.arange(1000, dtype=np.float32), DEVICE)
    module["scale"](x, 2.5, 999, 16, 64)
    expected = np.arange(1000, dtype=np.float32) * np.float32(2.5)
    expected[999] = 999
    np.testing.assert_array_equal(expected, x.numpy())


def test_ptx_runs() -> None:
    """PTX is compiled by the driver, and computes; a copy back waits for it."""
    check_scale(DeviceModule("cuda", compile_ptx(), "ptx", [SCALE]))


@pytest.mark.parametrize("extents", [(0, 8), (1, 0)])
def test_extent_of_zero_launches_nothing(extents: tuple[int, int]) -> None:
    """An extent of 0 runs no thread."""
    x = runtime.tensor(np.ones(8, np.float32), DEVICE)
    DeviceModule("cuda", compile_ptx(), "ptx", [SCALE])["scale"](x, 7.0, 8, *extents)
    assert (x.numpy() == 1).all()


def test_cubin_and_fatbin_run(tmp_path: Path) -> None:
    """A cubin for this device runs, alone and in a fatbin with others."""
    ptxas, fatbinary = needs.cuda_tool("ptxas"), needs.cuda_tool("fatbinary")
    own = tmp_path / "own.cubin"
    command = [ptxas, f"-arch=sm_{architecture()}", str(DATA / "scale.ptx"), "-o", str(own)]
    subprocess.run(command, check=True)
    check_scale(DeviceModule("cuda", own.read_bytes(), "cubin", [SCALE]))
    images = [f"--image3=kind=elf,sm={architecture()},file={own}"]
    images += [f"--image3=kind=ptx,sm=80,file={DATA / 'scale.ptx'}"]
    subprocess.run([fatbinary, "--64", f"--create={tmp_path / 'all'}", *images], check=True)
    check_scale(DeviceModule("cuda", (tmp_path / "all").read_bytes(), "fatbin", [SCALE]))


def test_fatbin_of_the_test_data_runs() -> None:
    """The fatbin's cubins or its compressed PTX are loaded, whichever fits."""
    check_scale(DeviceModule("cuda", (DATA / "scale.fatbin").read_bytes(), "fatbin", [SCALE]))


@pytest.mark.parametrize("nbytes", [4096, 65536])
def test_dynamic_shared_memory(nbytes: int) -> None:
    """A block has the shared memory that its launch asks for, more than 48 KiB included."""
    turn = FunctionInfo("turn", ("handle", "int32"), ("threadIdx.x", SHARED))
    x = runtime.tensor(np.arange(64, dtype=np.int32), DEVICE)
    DeviceModule("cuda", compile_ptx(TURN), "ptx", [turn])["turn"](x, nbytes // 256, 64, nbytes)
    np.testing.assert_array_equal(np.arange(64)[::-1], x.numpy())


def test_build_log_is_in_the_error() -> None:
    """PTX that the driver cannot compile."""
    text = compile_ptx().replace("mad.lo.s32", "mad.no.s32")
    with pytest.raises(DeviceError, match=r"rejected code for ptx sm_80; its log:\nptxas.*line"):
        DeviceModule("cuda", text, "ptx", [SCALE])["scale"](None, 1.0, 0, 1, 1)


def test_inconsistent_signature_is_refused() -> None:
    """From CUDA 12.4 on the driver reports the parameters of the code."""
    if [int(part) for part in FOUND["version"].split(".")] < [12, 4]:
        needs.system("kernel parameters", f"a driver of CUDA {FOUND['version']} does not tell")
    short = FunctionInfo("scale", ("handle", "float32"), TAGS)
    with pytest.raises(DeviceError, match="3 arguments in the code, 2 in the signature"):
        DeviceModule("cuda", compile_ptx(), "ptx", [short])["scale"](None, 1.0, 1, 1)


def test_host_code_launches(tmp_path: Path) -> None:
    """A library's host code finds the kernel of its import, and launches it."""
    source = (
        '#include "dso_packer.h"\n'
        "dso_status twice(DLTensor *x, int n) {\n"
        '  return dso_call("scale", NULL, dso_tensor(x), dso_float(2), dso_int(n), dso_int(16),'
        " dso_int(64)); }\n"
    )
    host = packer.CSourceModule(source, functions={"twice": "dso_status(DLTensor *x, int n)"})
    host.import_module(DeviceModule("cuda", compile_ptx(), "ptx", [SCALE]))
    model = runtime.load(packer.export_library(host, tmp_path / "model.so"))
    x = runtime.tensor(np.ones(1000, np.float32), DEVICE)
    model["twice"](x, 1000)
    assert (x.numpy() == 2).all()


def test_threads_launch() -> None:
    """Threads that never used CUDA before launch at once."""
    module = DeviceModule("cuda", compile_ptx(), "ptx", [SCALE])
    tensors = [runtime.tensor(np.ones(64, np.float32), DEVICE) for _ in range(8)]

    def work(x: runtime.Tensor) -> None:
        for _ in range(100):
            module["scale"](x, 1.5, 1, 1, 64)
            module["scale"](x, 1 / 1.5, 1, 1, 64)

    threads = [threading.Thread(target=work, args=(x,)) for x in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x in tensors:
        np.testing.assert_allclose(x.numpy(), np.ones(64), rtol=1e-4)


def test_stray_address_is_reported() -> None:
    """An error reports the lost context, and the process (a separate one) continues."""
    code = """
import json, pathlib, sys
import runtime
info = runtime.FunctionInfo("scale", ("handle", "float32", "int32"), ("threadIdx.x",))
module = runtime.DeviceModule("cuda", pathlib.Path(sys.argv[1]).read_bytes(), "ptx", [info])
try:
    module["scale"](None, 1.0, 1, 1)
    runtime.Device("cuda", 0).sync()
except runtime.DeviceError as error:
    print(json.dumps([error.code, str(error)]))
"""
    number, text = run_python(code, str(DATA / "scale.ptx"))
    assert number == 700
    assert "the data on the device is lost" in text
