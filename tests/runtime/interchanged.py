"""The forms of a tree, and trees to put through them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import packer
import runtime

SOURCE = "long answer(void) {{ return {}; }}"
FUNCTIONS = {"answer": "long(void)"}
# The forms that a tree is written in and restored from. They share its bytes, but carry them in
# different ways.
FORMS: dict[str, Callable[[runtime.Module], runtime.Module]] = {
    "bytes": lambda m: runtime.deserialize_module_from_bytes(
        runtime.serialize_module_to_bytes(m, export_dso=False)
    ),
    "base64": lambda m: runtime.import_module_from_base64(runtime.export_module_to_base64(m)),
    "json": lambda m: runtime.load_json(runtime.save_json(m)),
    "pickle2": lambda m: pickle.loads(pickle.dumps(m, protocol=2)),
    "pickle4": lambda m: pickle.loads(pickle.dumps(m, protocol=4)),
    "pickle5": lambda m: pickle.loads(pickle.dumps(m, protocol=5)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def device(name: str, *imports: runtime.Module, type_key: str = "cuda") -> runtime.DeviceModule:
    """A device module with one kernel."""
    info = runtime.FunctionInfo(name, ("handle", "int32"), ("blockIdx.x", "threadIdx.x"))
    module = runtime.DeviceModule(type_key, f"code of {name}", "ptx", [info])
    for imported in imports:
        module.import_module(imported)
    return module


def shape(module: runtime.DeviceModule) -> tuple[Any, ...]:
    """All that a tree of device modules holds."""
    fields = module.type_key, bytes(module.data), module.fmt, module.functions
    return *fields, [shape(imported) for imported in module.imported_modules]


def host(number: int = 42) -> packer.CSourceModule:
    """Host code with one function."""
    return packer.CSourceModule(SOURCE.format(number), functions=FUNCTIONS)
