"""A library of 1 GiB for the rows that disturb its export: a C file, and weights copied ahead.

model.py OUTPUT VERSION WEIGHTS: exports one, as a process that may be killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import packer
import runtime
from packer.embed import Embed

GIB = 1 << 30
MIB = 1 << 20
# Most of the weights is holes, so that hundreds of exports are quick; a piece per stride is data.
STRIDE, PIECE = 64 * MIB, MIB // 4


def write_weights(folder: Path, version: int, *, is_dense: bool = False) -> Path:
    """Write weights whose every piece has their version; dense ones are all data."""
    path = folder / f"weights{version}.safetensors"
    tensor = {"dtype": "U8", "shape": [GIB], "data_offsets": [0, GIB]}
    header = json.dumps({"w": tensor}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + GIB)
        for start in range(0, GIB, STRIDE):
            file.seek(8 + len(header) + start)
            file.write(_piece(version, start) * (STRIDE // PIECE if is_dense else 1))
    return path


def _piece(version: int, start: int) -> bytes:
    return bytes([version, start // STRIDE]) * (PIECE // 2)


def export(output: Path, version: int, weights: Path, *, embed: Embed = "auto") -> Path:
    """Export the model of a version."""
    source = f"int version(void) {{ return {version}; }}"
    root = packer.CSourceModule(source, functions={"version": "int(void)"})
    root.import_module(runtime.SafetensorsModule(weights))
    return packer.export_library(root, output, build=packer.Build(embed=embed))


def start_export(output: Path, version: int, weights: Path, **options: object) -> subprocess.Popen:  # type: ignore[type-arg]
    """Begin the same in a separate process."""
    command = [sys.executable, __file__, output, str(version), weights]
    return subprocess.Popen(command, **options)  # type: ignore[call-overload,no-any-return]


def version_of(path: Path) -> int:
    """Load a model, and return its version; AssertionError if its parts differ in that."""
    module = runtime.load(path)
    version: int = module["version"]()
    data = memoryview(module.weights["w"].numpy())
    assert len(data) == GIB
    for start in range(0, GIB, STRIDE):
        assert data[start : start + PIECE] == _piece(version, start), (version, start)
    return version


if __name__ == "__main__":
    try:
        export(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    except packer.PackerError as error:
        sys.exit(f"{type(error).__name__}: {error}")
