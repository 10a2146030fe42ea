"""Models of `system_lib=True` and format="tvm-ffi" register with real TVM, which finds them."""

from __future__ import annotations

import json

import numpy as np

import packer
import runtime

from .conftest import TVM_PYTHON


def test_their_system_library_has_our_models(tmp_path, run_script) -> None:
    """Functions, the entry and imports, by the prefix of each model; both ways to embed."""
    for embed in ("c", "llvm"):
        code = "long add(long a, long b) { return a + b; }"
        root = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
        root.import_module(runtime.ConstLoaderModule({embed: np.ones(3, "float32")}, {}))
        options = {"entry": "add", "system_lib": True, "c_symbol_prefix": f"{embed}_"}
        path = tmp_path / f"{embed}.o"
        packer.export_library(
            root, path, format="tvm-ffi", **options, build=packer.Build(embed=embed)
        )
    theirs = json.loads(run_script(TVM_PYTHON, "run_system_lib.py", tmp_path))
    same = {"kinds": ["library", "const_loader"], "add": 42, "entry": 3}
    assert theirs == [{**same, "constants": ["c"]}, {**same, "constants": ["llvm"]}]
