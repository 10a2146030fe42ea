"""Weights beyond 1 GiB through assembler and linker: embed="llvm", in large sections."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from model import GIB, export, version_of, write_weights


def main() -> int:
    """Export, look for the section, and read the weights; 1 if one is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = export(folder / "model.so", 1, write_weights(folder, 1), embed="llvm")
        sections = subprocess.check_output(["readelf", "-SW", path], text=True)
        version, is_large = version_of(path), ".lrodata" in sections
        print(f"{path.stat().st_size / GIB:.2f} GiB, {version=}, {is_large=}")
    return int(version != 1 or not is_large)


if __name__ == "__main__":
    sys.exit(main())
