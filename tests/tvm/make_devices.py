"""Compile the models of devices.py with real TVM, and run them there: ``make_devices.py FOLDER``.

TVM's wheel has no device but the CPU: a model whose second device is another number of the CPU runs
there, and the same model with OpenCL as the second device is compiled only.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import tvm
from devices import NAMES, inputs, source_of
from tvm import relax


def main(folder: Path) -> None:
    """Make ``cpu_<name>.so`` with its results, and ``opencl_<name>.so``."""
    for name in NAMES:
        path = folder / f"cpu_{name}.so"
        model = tvm.script.from_source(source_of(name, "llvm", 1))
        tvm.compile(model, target="llvm").export_library(str(path))
        loaded = tvm.runtime.load_module(str(path))
        machine = relax.VirtualMachine(loaded, [tvm.cpu(0), tvm.cpu(1)])
        result = machine["main"](*map(tvm.runtime.tensor, inputs(name)))
        results = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
        arrays = [tensor.numpy() for tensor in results]
        (folder / f"{name}.results").write_bytes(pickle.dumps(arrays))
        target = tvm.target.Target({"kind": "opencl", "host": "llvm"})
        model = tvm.script.from_source(source_of(name, "opencl", 0))
        tvm.compile(model, target=target).export_library(str(folder / f"opencl_{name}.so"))


main(Path(sys.argv[1]))
