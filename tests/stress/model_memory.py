"""Export models of 2.4 GiB of weights in another file, and of 1.5 GiB in one file.

model_memory.py [GIB]: of that size instead. The memory of each export is at most the size of its
weights and 500 MB. It runs in .venv-onnx, which has onnx.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
ONNX = ROOT / ".venv-onnx" / "bin" / "python"
GIB = 1 << 30
BEYOND = 500_000_000
MOST_IN_ONE_FILE = 1.5  # GiB; a message of protobuf has less than 2


def main(gib: float) -> int:
    """Export each, and print what it takes; 1 if one takes too much."""
    if find_spec("onnx") is None:
        if not ONNX.exists():
            print(f"not run: there is no {ONNX}; make test-models makes it")
            return 0
        return subprocess.run([ONNX, __file__, str(gib)], check=False).returncode
    sys.path.insert(0, str(ROOT))
    from importers.onnx.tests.support.large_model import export_memory, write_model

    failed = 0
    for is_external in (True, False):
        size = int(GIB * (gib if is_external else min(gib, MOST_IN_ONE_FILE)))
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            model = Path(folder) / "m.onnx"
            write_model(model, size, is_external=is_external)
            peak = export_memory(model, Path(folder) / "m.so")
        where = "another file" if is_external else "one file"
        print(f"{size / GIB:.1f} GiB in {where}: {peak / GIB:.2f} GiB of memory")
        failed |= peak > size + BEYOND
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.4))
