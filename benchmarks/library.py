"""The libraries that are measured: a few small functions, with or without a device payload."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Literal

import packer
import runtime

MIB = 1 << 20
KERNELS = Path(__file__).with_name("kernels.c")
# For packer, and unchanged for cffi.
DECLARATIONS = {
    "noop": "void(void)",
    "add": "int64_t(int64_t a, int64_t b)",
    "pair": "void(const float *x, float *y)",
    "first": "int64_t(const char *text)",
    "mixed": "double(int64_t a, double b, bool c, const char *text, const float *x, float *y, "
    "int32_t n, int64_t d)",
}


def build_library(
    path: Path, *, payload: Path | None = None, gil: Literal["release", "keep"] = "release"
) -> Path:
    """Export the functions, and a device payload if one is given."""
    root = operators(gil)
    if payload is not None:
        root.import_module(runtime.DeviceModule("cuda", payload.read_bytes(), "cubin", []))
    return packer.export_library(root, path)


def operators(gil: Literal["release", "keep"] = "release") -> packer.CSourceModule:
    """The functions as a module."""
    functions = {
        name: packer.FunctionDeclaration(declaration, gil=gil)
        for name, declaration in DECLARATIONS.items()
    }
    return packer.CSourceModule(KERNELS, functions=functions)


def build_with_tvm(path: Path) -> Path:
    """Compile and export `add` and `pair` with TVM, in a separate process."""
    script = Path(__file__).with_name("tvm_library.py")
    subprocess.run([sys.executable, script, path], check=True)
    return path


def write_payload(folder: Path, nbytes: int) -> Path:
    """Write bytes that cannot be compressed; the same in every run."""
    path = folder / f"payload_{nbytes}.bin"
    if not path.exists():
        path.write_bytes(random.Random(nbytes).randbytes(nbytes))
    return path
