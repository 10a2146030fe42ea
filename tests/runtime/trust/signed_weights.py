"""Signed libraries whose weights fill pieces of the hash tree, and changes of single bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import safetensors.numpy

import packer
import runtime
from packer.trust.sign import sign_library
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support import signing
from ...support.graphs import graph, null, op
from ...support.vm_assembler import Code, Program, call, const, packed, ret
from ...support.weights_host import FUNCTIONS, SOURCE

TENSOR = 70
MIB = 1 << 20
PIECE = MIB
LENGTH = 3 * MIB // 4
OPERATOR = (
    "void add(const float *a, const float *b, float *c)"
    f"{{ for (int i = 0; i < {LENGTH}; i++) c[i] = a[i] + b[i]; }}\n"
)
ADD = {"add": "void(const float *a, const float *b, float *c)"}
CONSTANTS = """
static const float *weights;
void __init_conv(const float *w) { weights = w; }
float conv(float x) { return x * weights[1]; }
"""
CONV = {"__init_conv": "void(const float *w)", "conv": "float(float x)"}


def arrays() -> dict[str, np.ndarray]:
    """Four arrays of 3 MiB; each has bytes that no other has."""
    return {f"w{i}": np.arange(LENGTH, dtype="f4") + i * 2**22 for i in range(4)}


def host() -> runtime.Module:
    """A file of weights, below host code that reads them."""
    root = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    root.import_module(runtime.SafetensorsModule(safetensors.numpy.save(arrays())))
    return root


def constants() -> runtime.Module:
    """Constants, above the host code that takes one of them."""
    root = runtime.ConstLoaderModule(arrays(), {"conv": ["w1"]})
    root.import_module(packer.CSourceModule(CONSTANTS, functions=CONV))
    return root


def factory() -> runtime.Module:
    """A graph of one sum, with a parameter."""
    nodes = [null("x"), null("w1"), op("total", "add", [0, 1])]
    fields = graph(nodes, [2], [[LENGTH]] * 3)
    root = runtime.GraphExecutorFactory(json.dumps(fields), {"w1": arrays()["w1"]})
    root.import_module(packer.CSourceModule(OPERATOR, functions=ADD))
    return root


def bytecode() -> runtime.Module:
    """A program that returns its constant, in a tuple."""
    main = Code("main", [], [call(0, 1, const(0)), ret(0)], 1)
    made = Program([main, packed("vm.builtin.make_tuple")], [(TENSOR, arrays()["w1"])])
    return load(Reader(made.payload()))


def export(root: runtime.Module, folder: Path, name: str, **options: object) -> Path:
    """Export and sign a library; its public key is ``acme.pub`` beside it."""
    path = packer.export_library(root, folder / name, **options)  # type: ignore[arg-type]
    if not (folder / "acme.key").exists():
        signing.keys(folder)
    sign_library(path, folder / "acme.key")
    return path


def middle_of(path: Path, name: str = "w1") -> int:
    """The offset of the middle of an array in a file."""
    data = path.read_bytes()
    start = data.find(arrays()[name][:64].tobytes())
    assert start > 0
    return start + 4 * LENGTH // 2


def flip(path: Path, offset: int) -> None:
    """Change a bit of a file in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
