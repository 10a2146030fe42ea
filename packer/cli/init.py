"""``packer init``: write a commented packer.toml, and the source that it names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from runtime.error import ExportError

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Write a commented packer.toml, and host.c, the source that it names. Nothing is overwritten."""

_EPILOG = """\
examples:
  packer init && packer export && packer load model.so add 40 2
  packer init kernels"""

_PROJECT = """\
# What `packer export` makes, and of what. Paths are relative to this file's folder.

[library]
output = "model.so"
# root = "host"          # where the tree begins; by default the one module that nobody imports
# entry = "add"          # the function that runtime.load("model.so")(...) calls
# format = "tvm"         # who else can read the tree: tvm (TVM to 2025) or tvm-ffi (TVM since)
# embed = "auto"         # how the imports get into the library: auto, segment, llvm or c
# target = "aarch64-linux-gnu"    # what the library is for; by default what the compiler is for
# options = ["-lfoo"]    # further options for the linker driver
# addons = ["foo.o"]     # further files to link
# system_lib = true      # register all of it at start-up, for static linking (output = "model.o")
# c_symbol_prefix = "net1_"    # before every symbol, so that several models go into one program

# One table for each module: [module.NAME]. Host code of all of them merges into the library's
# own code; every other module is carried beside it, and comes back as an imported module.

[module.host]
kind = "c"               # c, cc, cu: source; llvm: .ll or .bc; static_library: .o or .a
sources = ["host.c"]
# options = ["-O3"]      # for the compiler; c, cc and cu
# target = "x86_64-unknown-linux-gnu"    # llvm
# imports = ["kernels", "constants", "weights"]

# What can be called by name: each function's C type without its name.
#   intN_t uintN_t int long size_t bool float double     numbers
#   T *  const T *                                       an array's data; without const, writable
#   DLTensor *                                           an array as it is
#   const char *                                         text
[module.host.functions]
add = "int64_t(int64_t a, int64_t b)"
scale = { declaration = "void(float *x, int64_t n, float by)", doc = "Multiply x by a number." }
# Other threads run during a call, unless: { declaration = "...", gil = "keep" }

# Code for a device: cuda, opencl, hip, metal, vulkan, webgpu, ...
# [module.kernels]
# kind = "opencl"
# fmt = "cl"             # by default the suffix of the source
# sources = ["kernels.cl"]               # cuda: one file, or cubins and PTX for several devices
# [module.kernels.functions]
# scale = { arg_types = ["handle", "int32"], launch_param_tags = ["blockIdx.x", "threadIdx.x"] }

# Constants, for host code: on the first look-up of conv, __init_conv(w) is called.
# [module.constants]
# kind = "const_loader"
# constants = { w = "w.npy" }
# by_symbol = { conv = ["w"] }

# Weights of any size: they come back as model.weights["name"], read-only and without a copy.
# [module.weights]
# kind = "safetensors"
# sources = ["model.safetensors"]

# A graph of operators, which host code has: model["default"]() makes an executor of it. Its
# parameters are a params dict or safetensors file; or modules below it carry them.
# [module.graph]
# kind = "graph"
# graph = "graph.json"
# params = "model.safetensors"
# name = "default"
# imports = ["host"]

# Anything else: a Python function without arguments that returns a runtime.Module.
# [module.own]
# kind = "python"
# factory = "build.py:make"
"""

_SOURCE = """\
#include <stdint.h>

int64_t add(int64_t a, int64_t b) {
  return a + b;
}

void scale(float *x, int64_t n, float by) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by;
}
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer init``."""
    parser = CommandParser("packer init", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=".", help="made if need be; by default here"
    )
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Write the files.

    Raises
    ------
    ExportError
        packer.toml is there already, or a file cannot be written.
    """
    _make_folder(arguments.folder)
    project, source = (Path(arguments.folder, name) for name in ("packer.toml", "host.c"))
    if os.path.lexists(project):
        raise ExportError(f"{shown_path(project)}: is there already", path=str(project))
    if os.path.lexists(source):
        write(f"{shown_path(source)}: is there already, left as it is: declare its own functions")
    else:
        _write_new(source, _SOURCE)
    _write_new(project, _PROJECT)


def _make_folder(path: str) -> None:
    try:
        Path(path).mkdir(exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"{shown_path(path)}: cannot make the folder: {reason}"
        raise ExportError(text, path=path) from error


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExportError(f"{shown_path(path)}: cannot write: {reason}", path=str(path)) from error
    write(f"{shown_path(path)}: written")
