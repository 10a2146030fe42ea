"""Compile the models with real TVM, and run them there: ``make_models.py FOLDER``.

Each ``<target>_<name>.so`` has its outcomes in TVM and its bytecode as text in the same folder.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import tvm
from model_calls import ON_OPENCL, ONLY_LLVM, outcomes
from models import MODELS
from tvm import relax
from tvm_values import pass_value, read_value


def main(folder: Path) -> None:
    """Make all of them, for both host code generators."""
    for name, make in MODELS.items():
        for target in ("llvm",) if name in ONLY_LLVM else ("llvm", "c"):
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
