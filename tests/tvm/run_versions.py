"""Run models whose bytecode is of version 1 in real TVM: ``run_versions.py FOLDER``.

The folder has the models of make_models.py, and the payload of each in version 1 as
``<name>.version_one``; ``<name>.theirs`` gets the outcomes.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import tvm
import tvm_ffi
from model_calls import CALLS, outcomes
from tvm import relax
from tvm_values import pass_value, read_value


def main(folder: Path) -> None:
    """Run all of them."""
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")
    for name in CALLS:
        model = load((folder / f"{name}.version_one").read_bytes())
        library = tvm.runtime.load_module(str(folder / f"llvm_{name}.so"))
        model.import_module(library.imports[0])
        made = outcomes(name, relax.VirtualMachine(model, tvm.cpu()), pass_value, read_value)
        (folder / f"{name}.theirs").write_bytes(pickle.dumps(made))


main(Path(sys.argv[1]))
