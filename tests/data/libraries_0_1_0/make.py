"""Make the libraries of this folder, with packer 0.1.0: python make.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import packer
import runtime

PACKED = """
#include <stdint.h>
int helper(void) { return 0; }
int twice(int64_t *args, int *codes, int n, int64_t *ret, int *code, void *resource) {
  *ret = 2 * args[0];
  *code = 0;
  return 0;
}
"""
SCALE = "void scale(float *x, long n, double f) { for (long i = 0; i < n; i++) x[i] *= f; }"


def scale() -> packer.CSourceModule:
    """A safe-call function, and a device module that is carried."""
    root = packer.CSourceModule(SCALE, functions={"scale": "void(float *x, long n, double f)"})
    root.import_module(runtime.DeviceModule("cuda", b"device code", "cubin", []))
    return root


def main(folder: Path) -> None:
    """Export them, without symbols for a debugger."""
    packed = packer.CSourceModule(PACKED, functions=["twice"])
    packer.export_library(packed, folder / "packed.so", options=["-s"])
    packer.export_library(scale(), folder / "scale.so", options=["-s"])
    packer.export_library(scale(), folder / "scale_tvm_ffi.so", format="tvm-ffi", options=["-s"])
    undeclared = packer.CSourceModule(SCALE)
    packer.export_library(undeclared, folder / "undeclared.so", options=["-s"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
