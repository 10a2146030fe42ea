"""CUDA code by llvmlite and NVIDIA's tools, and a FAKE driver to give it to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from llvmlite import binding

from . import paths
from .paths import C_SOURCES

DATA = paths.DATA / "cuda"
TRIPLE = "nvptx64-nvidia-cuda"
# void scale(float *x, float by, int n): if (i < n) x[i] *= by
KERNEL = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
define ptx_kernel void @scale(ptr addrspace(1) %x, float %by, i32 %n) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %block, %threads
  %i = add i32 %first, %thread
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %work, label %end
work:
  %place = getelementptr float, ptr addrspace(1) %x, i32 %i
  %value = load float, ptr addrspace(1) %place
  %scaled = fmul float %value, %by
  store float %scaled, ptr addrspace(1) %place
  br label %end
end:
  ret void
}
"""


def compile_ptx(ir: str = KERNEL, architecture: str = "sm_80") -> str:
    """PTX of LLVM IR."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(cpu=architecture, opt=2)
    module = binding.parse_assembly(f'target triple = "{TRIPLE}"\n{ir}')
    return str(machine.emit_assembly(module))


def build_fake_driver(folder: Path) -> Path:
    """The FAKE libcuda.so.1 in a folder, for LD_LIBRARY_PATH."""
    source = C_SOURCES / "fake_cuda.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", str(source)]
    command.append("-Wl,-soname,libcuda.so.1")
    subprocess.run([*command, "-o", str(folder / "libcuda.so.1")], check=True)
    return folder


def run_with_fake(
    folder: Path, code: str, *args: Any, **settings: str
) -> tuple[list[str], list[str]]:
    """Run Python with the FAKE driver; return its output, and the driver's log.

    Settings are as in `fake_cuda.c`, without FAKE_CUDA_, in lower case.
    """
    log = folder / "log"
    log.write_text("")
    variables = {"FAKE_CUDA_LOG": str(log), "LD_LIBRARY_PATH": str(folder)}
    variables |= {f"FAKE_CUDA_{name.upper()}": text for name, text in settings.items()}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, args)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines(), log.read_text(errors="replace").splitlines()
