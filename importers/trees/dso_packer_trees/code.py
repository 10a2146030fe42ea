"""The C code of models: modules that all models of a library share, and the library of the wheel.

`prelink` writes that library when a wheel is built, so this file imports no NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from packer import Build, CSourceModule, StaticLibraryModule, export_library, operators
from packer.levels.table import DEFAULT_LEVELS
from packer.operators import INCLUDE
from runtime import SafetensorsModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packer.levels.table import Level
    from packer.modules.host import CodeFile
    from packer.target import Target

_SUPPORT = Path(__file__).parent / "support"
_OBJECTS = Path(__file__).parent / "objects"  # setup.py makes them
_CALL = "dso_status(const DLTensor *tables, const DLTensor *x, DLTensor *y)"
_FUNCTIONS = {
    "evaluate.c": {
        "trees_is_batch": "int64_t(const DLTensor *x)",
        "trees_predict": _CALL,
        "trees_leaves": _CALL,
    },
    "steps.c": {"trees_transform": _CALL},
}
_made: WeakValueDictionary[str, CSourceModule] = WeakValueDictionary()


def code_modules(*, has_steps: bool) -> list[CSourceModule]:
    """Return the modules of the C code: the same ones for all models of a library."""
    files = [*_FUNCTIONS] if has_steps else ["evaluate.c"]
    modules = [_made.get(file) or _c_module(file) for file in files]
    parallel = _made.get("parallel") or operators.modules("parallel")[0]
    _made.update(zip([*files, "parallel"], [*modules, parallel], strict=True))
    for module in (*modules, parallel):
        module.prelinked = _OBJECTS / "trees.so"
    return [*modules, parallel]


def prelink(library: Path) -> None:
    """Export all code for the levels of this machine, with a tree that exports replace."""
    root = SafetensorsModule((2).to_bytes(8, "little") + b"{}")
    for module in code_modules(has_steps=True):
        root.import_module(module)
    export_library(root, library, build=Build(cpu=DEFAULT_LEVELS))


class _Code(CSourceModule):
    """C code of this distribution; the wheel may have its object for each level of a machine."""

    def write_levels(
        self, stem: Path, object_format: str, target: Target, levels: Sequence[Level]
    ) -> CodeFile:
        """Copy the objects, if there is one for each level; else write the source."""
        name = Path(self.path or "").stem
        objects = {level.name: _OBJECTS / f"{name}-{level.name}.o" for level in levels}
        if target.environment != "gnu" or not all(path.exists() for path in objects.values()):
            return super().write_levels(stem, object_format, target, levels)
        return StaticLibraryModule(objects).write_levels(stem, object_format, target, levels)


def _c_module(file: str) -> CSourceModule:
    return _Code(
        _SUPPORT / file,
        functions=_FUNCTIONS[file],
        include=[INCLUDE],
        libraries=("m",),
        options=("-O3", "-ffp-contract=off"),
    )
