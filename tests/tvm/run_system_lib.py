"""Link packer's models with tvm_ffi, and use them: ``run_system_lib.py FOLDER``; prints JSON."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import tvm  # noqa: F401 (registers the loader of const_loader)
import tvm_ffi
from tvm_ffi.libinfo import find_libtvm_ffi


def outcomes(prefix: str) -> dict[str, Any]:
    """Use what TVM finds of one model."""
    module = tvm_ffi.system_lib(prefix)
    (constants,) = module.imports
    return {
        "kinds": [module.kind, constants.kind],
        "add": module["add"](40, 2),
        "entry": module["main"](1, 2),
        "constants": [str(name) for name in constants["get_const_var_tensor"]()],
    }


folder = Path(sys.argv[1])
theirs = Path(find_libtvm_ffi()).parent
linked = [f"-L{theirs}", "-ltvm_ffi", f"-Wl,-rpath,{theirs}"]
models = sorted(folder.glob("*.o"))
subprocess.run(["cc", "-shared", "-o", folder / "models.so", *models, *linked], check=True)
ctypes.CDLL(str(folder / "models.so"))
print(json.dumps([outcomes(f"{model.stem}_") for model in models]))
