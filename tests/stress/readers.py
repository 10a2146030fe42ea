"""Readers load a path in a loop while two exporters replace it: no load fails, no file is mixed.

readers.py [EXPORTS]: so many by each exporter.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from model import export, version_of, write_weights

NUM_READERS = 2


def main(exports: int) -> int:
    """Start all, and wait; return 1 if one of them failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "model.so"
        export(path, 1, write_weights(folder, 1))
        write_weights(folder, 2)
        exporters = [_start("write", path, str(v), str(exports)) for v in (1, 2)]
        readers = [_start("read", path) for _ in range(NUM_READERS)]
        statuses = [process.wait() for process in exporters]
        (folder / "done").touch()
        statuses += [process.wait() for process in readers]
    print(f"exit statuses of {len(exporters)} exporters and {NUM_READERS} readers: {statuses}")
    return int(any(statuses))


def _start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, *arguments])


def write(path: Path, version: int, count: int) -> None:
    """Replace the file so many times."""
    for _ in range(count):
        export(path, version, path.with_name(f"weights{version}.safetensors"))


def read(path: Path) -> None:
    """Load it until the exporters are done, and see both versions."""
    counts, changes, last = {1: 0, 2: 0}, 0, 0
    while not path.with_name("done").exists():
        version = version_of(path)
        counts[version] += 1
        changes += version != last
        last = version
    print(
        f"reader: {counts[1]} times version 1, {counts[2]} times 2, {changes} changes", flush=True
    )
    assert changes > 2, "too few to tell"


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["read"]:
        read(Path(sys.argv[2]))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
