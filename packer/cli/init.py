"""``packer init``: write a commented packer.toml, and the source that it names."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..files.output import reporting
from ..files.text import path_error, shown_path
from .parser import CommandParser
from .terminal import write, write_error

_DESCRIPTION = """\
Write a commented packer.toml and host.c, the source that it names. Existing files are kept."""

_EPILOG = """\
examples:
  packer init && packer export && packer load model.so add 40 2
  packer init kernels
  packer init --header /usr/include/zlib.h     # the functions of a header"""

_PROJECT = """\
# The library that `packer export` makes. Paths are relative to the folder of this file.

[library]
output = "model.so"
# root = "host"          # the root of the tree; by default the one module that no other imports
# entry = "add"          # the function that runtime.load("model.so")(...) calls
# format = "tvm"         # the dialect of the tree: tvm (TVM until 2025) or tvm-ffi (TVM since)
# embed = "auto"         # how the imports are embedded in the library: auto, segment, llvm or c
# target = "aarch64-linux-gnu"    # the machine to make it for; by default that of the compiler
# options = ["-Llib"]    # options for the linker driver
# allow_undefined = ["cu*"]    # symbols that the process provides, as these patterns
# addons = ["foo.o"]     # further files to link
# system_lib = true      # register the modules at start-up, for static linking (output = "model.o")
# c_symbol_prefix = "net1_"    # a prefix for every symbol, to link several models into a program
# visibility = "declared"      # hide every function that is not declared
# legacy_calls = true          # plain names are packed C functions, for TVM to 2025
# soname = "libmodel.so.1"     # the name by which other binaries need it
# version = "1.0"              # model.metadata["version"], and so on
# license = "MIT"
# metadata = { authors = ["A. Author"], trained = { epochs = 3 } }
# encrypt_key = "acme.aes"     # of `packer keygen acme --encryption`; runtime.load(path, key=...)
# encrypt = ["graph", "weights"]      # what is encrypted; by default all modules but host code
# cpu = ["x86-64-v2", "x86-64-v3"]    # compile host code for each; a load uses the best one

# One table for each module: [module.NAME]. The host code of all modules is merged into the code
# of the library. Every other module is stored beside it, and loaded as an imported module.

[module.host]
kind = "c"               # c, cc, cu: source; llvm: .ll or .bc; static_library: .o or .a
sources = ["host.c"]     # a pattern is every file that it matches: "src/**/*.c"
# include = ["include"]  # folders with headers; c, cc and cu
# define = ["SIZE=3"]    # macros
# options = ["-O3"]      # further options for the compiler, which runs in the folder of this file
# libraries = ["z"]      # libraries to link
# target = "x86_64-unknown-linux-gnu"    # llvm; also cpu = "x86-64-v3", features = "+fma", opt = 3
# imports = ["kernels", "constants", "weights"]

# The functions to export: the C type of each, without its name. All that the sources define, in
# place of this table: functions = "auto". All of a header: header = "host.h" in this table.
#   intN_t uintN_t int long size_t bool float double     numbers
#   T *  const T *                                       the data of an array; T * is writable
#   DLTensor *                                           any array
#   const char *  char **                                text, a list of it
#   struct s  struct s *                                 a mapping, a structured array
#   foo *                                                a handle, if the struct foo is opaque
#   int (*)(int)                                         a callable
[module.host.functions]
add = "int64_t(int64_t a, int64_t b)"
scale = { declaration = "void(float *x, int64_t n, float by)", doc = "Multiply x by a number." }
# Further options: out = ["parameter"], free = "function", errno = true, symbol = "name"
# and lifetime = "parameter", kept = "parameter", defaults = { parameter = 1 }, gil = "keep"
# (docs/functions.md)

# Code for a device: cuda, opencl, hip, metal, vulkan, webgpu, ...
# [module.kernels]
# kind = "opencl"
# fmt = "cl"             # by default the suffix of the source
# sources = ["kernels.cl"]               # cuda: one file, or cubins and PTX for several devices
# [module.kernels.functions]
# scale = { arg_types = ["handle", "int32"], launch_param_tags = ["blockIdx.x", "threadIdx.x"] }

# Constants for host code: the first look-up of conv calls __init_conv(w).
# [module.constants]
# kind = "const_loader"
# constants = { w = "w.npy" }
# by_symbol = { conv = ["w"] }

# Weights of any size: model.weights["name"] is a read-only view of the loaded file.
# [module.weights]
# kind = "safetensors"
# sources = ["model.safetensors"]

# A graph of operators that host code computes: model["default"]() makes an executor. params is a
# params dict or a safetensors file; without it the imports contain the parameters.
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

_HEADER_PROJECT = """\
# The library that `packer export` makes: the functions of C headers.

[library]
output = "{stem}.so"

[module.{stem}]
kind = "c"
# libraries = ["{stem}"]    # the library that defines the functions
# sources = ["{stem}.c"]    # or the code that defines them

# Every function that the header declares is exported; only = ["NAME", ...] exports these alone. A
# line here replaces a declaration, adds options, or leaves a function out: NAME = false. These are
# the declarations that were read:
[module.{stem}.functions]
header = {header}
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
    """Parse the arguments of ``packer init``."""
    parser = CommandParser("packer init", description=_DESCRIPTION, epilog=_EPILOG)
    text = "the folder to write; made if missing; by default the current one"
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help=text)
    header = "write a packer.toml for the functions of this C header"
    parser.add_repeated("--header", "FILE", header)
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Write the files."""
    with reporting(arguments.folder, "create the folder"):
        Path(arguments.folder).mkdir(exist_ok=True)
    project, source = (Path(arguments.folder, name) for name in ("packer.toml", "host.c"))
    if os.path.lexists(project):
        raise path_error(project, "exists already")
    if arguments.header:
        _write_new(project, _header_project(arguments.header, Path(arguments.folder)))
        return
    if os.path.lexists(source):
        write(f"{shown_path(source)}: exists already, not changed; declare its functions")
    else:
        _write_new(source, _SOURCE)
    _write_new(project, _PROJECT)


def _header_project(headers: Sequence[str], folder: Path) -> str:
    """Return a packer.toml for headers, and report the functions that are left out."""
    import json

    from ..declare.automatic import table_lines
    from ..importers.header import from_header

    module = from_header(headers)
    paths = [_path_from(folder, header) for header in headers]
    stem = re.sub(r"\W", "_", Path(headers[0]).stem, flags=re.ASCII) or "header"
    shown = json.dumps(paths if len(paths) > 1 else paths[0])
    text = _HEADER_PROJECT.format(stem=stem, header=shown)
    lines = [f"# {line}" for line in table_lines(module.functions)]
    for name, reason in module.left_out.items():
        write_error(f"{name}: not exported: {reason}")
    return text + "\n".join(lines) + "\n"


def _path_from(folder: Path, header: str) -> str:
    """Return the path of a header from a folder; an absolute one unless it is below that."""
    relative = os.path.relpath(header, folder)
    return os.path.abspath(header) if relative.startswith("..") else relative


def _write_new(path: Path, text: str) -> None:
    with reporting(path), path.open("x", encoding="utf-8") as file:
        file.write(text)
    write(f"{shown_path(path)}: written")
