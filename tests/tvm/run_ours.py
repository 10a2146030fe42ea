"""Load packer's libraries in apache-tvm and call them: ``run_ours.py FOLDER``; prints JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm_ffi.core import TypeSchema


def raised(function: Callable[..., Any], *args: Any) -> str:
    """Call, and return the error's kind and text."""
    try:
        return f"returned {function(*args)}"
    except Exception as error:  # any error: the test compares it
        return f"{type(error).__name__}: {error}"


def kinds(module: Any) -> list[Any]:
    """The tree below a module, as nested lists."""
    return [module.kind, *(kinds(child) for child in module.imports)]


def plain(module: Any) -> dict[str, Any]:
    """NumPy arrays, TVM's tensors, text, errors, and the properties of functions."""
    x, y = np.arange(4, dtype="float32"), tvm.runtime.tensor(np.zeros(4, "float32"))
    module["add_one"](x, y, 4)
    schema = module.get_function_metadata("add_one")["type_schema"]
    return {
        "kinds": kinds(module),
        "y": y.numpy().tolist(),
        "entry": module["main"](3.0),
        "text": [module["greet"]("hi"), module["greet"]("hello, world")],
        "static": module["twice"](21),
        "refused": raised(module["add_one"], x, np.zeros(4, "int32"), 4),
        "too large": raised(module["add_one"], x, x, 1 << 63),
        "schema": str(TypeSchema.from_json_str(schema)),
        "doc": module.get_function_doc("half"),
        "no doc": module.get_function_doc("greet"),
    }


def constants(module: Any) -> dict[str, Any]:
    """The root hands its arrays to host code below it, once."""
    found = module["get_const_var_tensor"]()
    return {
        "kinds": kinds(module),
        "scaled": [module["scaled"](2.0), module["scaled"](3.0)],
        "constants": {str(name): array.numpy().tolist() for name, array in found.items()},
    }


def caller(module: Any, other: Any) -> dict[str, Any]:
    """Host code calls global functions, and functions of its imports."""
    told: list[Any] = []
    tvm_ffi.register_global_func("test.told", lambda *values: told.append(values[:2]))
    module["ask"]("test.told", 3)
    y = np.zeros(1)
    absent = raised(module["ask_float"], "half", 5.0, y)
    module.import_module(other)
    module["ask_float"]("half", 5.0, y)
    refused = raised(module["ask_float"], "greet", 5.0, y)
    return {"told": told, "absent": absent, "y": y.tolist(), "refused": refused}


def main(folder: Path) -> None:
    """Load them all."""
    names = ("plain", "constants", "caller")
    modules = {name: tvm_ffi.load_module(str(folder / f"{name}.so")) for name in names}
    made = {
        "plain": plain(modules["plain"]),
        "constants": constants(modules["constants"]),
        "caller": caller(modules["caller"], modules["plain"]),
        "with_kernels": raised(tvm_ffi.load_module, str(folder / "with_kernels.so")),
    }
    print(json.dumps(made))


main(Path(sys.argv[1]))
