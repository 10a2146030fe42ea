"""Compile the models with real TVM, and run them there: ``make_models.py FOLDER``.

Each ``<target>_<name>.so`` has its outcomes in TVM and its bytecode as text in the same folder.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from model_calls import ON_OPENCL, Shape, outcomes
from models import MODELS
from tvm import relax


def pass_value(value: Any) -> Any:
    """Convert a value to the form of TVM."""
    if isinstance(value, Shape):
        return tvm_ffi.Shape(value)
    if isinstance(value, tuple):
        return tuple(map(pass_value, value))
    return tvm.runtime.tensor(value) if isinstance(value, np.ndarray) else value


def read_value(value: Any) -> Any:
    """As NumPy and Python have it."""
    if isinstance(value, tvm_ffi.Shape):
        return tuple(value)
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(read_value, value))
    return value.numpy() if hasattr(value, "numpy") else value


def main(folder: Path) -> None:
    """Make all of them, for both host code generators."""
    for name, make in MODELS.items():
        for target in ("llvm", "c"):
            path = folder / f"{target}_{name}.so"
            executable = tvm.compile(make(), target=target)
            executable.export_library(str(path))
            machine = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
            made = outcomes(name, machine, pass_value, read_value)
            path.with_suffix(".outcomes").write_bytes(pickle.dumps(made))
            path.with_suffix(".txt").write_text(executable.as_text())
    for name in ON_OPENCL:  # this build of TVM compiles for OpenCL, and cannot run it
        target = tvm.target.Target({"kind": "opencl", "host": "llvm"})
        tvm.compile(MODELS[name](), target=target).export_library(str(folder / f"opencl_{name}.so"))


main(Path(sys.argv[1]))
