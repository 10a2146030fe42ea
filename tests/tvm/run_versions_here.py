"""The same as run_versions.py with our runtime alone: ``run_versions_here.py FOLDER``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

for blocked in ("tvm", "tvm_ffi"):
    sys.modules[blocked] = None  # type: ignore[assignment]


def read_value(value: Any) -> Any:
    """As NumPy and Python have it."""
    if isinstance(value, tuple):
        return tuple(map(read_value, value))
    return value.numpy() if hasattr(value, "numpy") else value


def main(folder: Path) -> None:
    """Store the outcomes of each as ``<name>.ours_version_one``."""
    from model_calls import CALLS, outcomes

    import runtime
    from runtime.modules.vm import load
    from runtime.serial.stream import Reader

    for name in CALLS:
        model = load(Reader((folder / f"{name}.version_one").read_bytes()))
        for imported in runtime.load(folder / f"llvm_{name}.so").imported_modules:
            model.import_module(imported)
        made = outcomes(name, model, lambda value: value, read_value)
        (folder / f"{name}.ours_version_one").write_bytes(pickle.dumps(made))
    assert "libtvm" not in Path("/proc/self/maps").read_text()


main(Path(sys.argv[1]))
