"""Compile the libraries of the matrix with real TVM, and run them: ``make_libraries.py FOLDER``.

The outcomes in TVM are stored next to each ``<target>_<name>.so``.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi
from calls import BFLOAT16, CALLS, Call, Told, outcomes
from libraries import LIBRARIES


def main(folder: Path) -> None:
    """Make all of them."""
    for name, (make, targets) in LIBRARIES.items():
        for target in targets:
            path = folder / f"{target}_{name}.so"
            make(target).export_library(str(path))
            if not target.startswith("opencl"):
                store_outcomes(path, name)


def store_outcomes(path: Path, name: str) -> None:
    """Run the library here."""
    told = Told()
    tvm_ffi.register_global_func("test.told", told, override=True)
    module = tvm.runtime.load_module(str(path))
    made = outcomes(CALLS[name], module, pass_array, told)
    path.with_suffix(".outcomes").write_bytes(pickle.dumps(made))


def pass_array(array: np.ndarray, call: Call) -> object:
    """Unchanged, if NumPy can pass it to TVM."""
    return tvm.runtime.tensor(array) if array.dtype == BFLOAT16 else array


main(Path(sys.argv[1]))
