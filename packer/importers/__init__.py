"""Importers: modules made from what others describe, such as a C header or a model.

Each importer is a folder here and a row in `IMPORTERS`, `MODELS` or `SCRIPTS`. Other packages add
theirs as entry points of the group ``dso_packer.importers``, named after the key in packer.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.module import Module

    from ..modules.host import HostModule

GROUP = "dso_packer.importers"
# The key in packer.toml, and the function that makes the module; `from_header` shows its arguments.
IMPORTERS = {"header": ("header", "from_header")}
# The kind in packer.toml, the function that makes the tree of a model, and the keys of its table
# beside ``model``, which are arguments of the function.
MODELS = {
    "onnx": ("onnx", "from_onnx", ("input_shapes", "dynamic", "input_values", "options")),
    "torch": ("torch", "from_torch_function", ("options",)),
}
# The kind in packer.toml, the function that makes a module of a Python file, and the keys of its
# table beside ``sources``, which are arguments of the function.
SCRIPTS = {"numba": ("numba", "from_numba", ("functions", "only", "timeout", "force", "blas"))}


def find_importer(key: str) -> Callable[..., HostModule] | None:
    """Return the function that makes a module of a file, or None if no importer has this key."""
    found: Any = None
    if key in IMPORTERS:
        folder, name = IMPORTERS[key]
        found = getattr(import_module(f".{folder}", __name__), name)
    else:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP, name=key):
            found = entry.load()
    return found  # type: ignore[no-any-return]


def find_model_importer(kind: str) -> Callable[..., Module]:
    """Return the function that makes a tree of modules of a model, or of a script, of one kind."""
    folder, name, _ = (MODELS | SCRIPTS)[kind]
    found: Callable[..., Module] = getattr(import_module(f".{folder}", __name__), name)
    return found
