"""kill -9, spread evenly over an export of 1 GiB over an older library: the old or the new file.

kill_export.py [ROUNDS]: prints how often each survived, and the files that the next export left.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from model import export, start_export, version_of, write_weights

# How far after the usual time of an export the last kill is.
BEYOND = 1.2


def main(rounds: int) -> int:
    """Kill so many exports; return 1 if a file was neither, never appeared, or was left."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = {version: write_weights(folder, version) for version in (1, 3)}
        weights[2] = write_weights(folder, 2, is_dense=True)
        old = export(folder / "old.so", 1, weights[1])
        path = folder / "model.so"
        seconds = sorted(_export_seconds(path, weights[2]) for _ in range(5))[2]
        names = sorted(os.listdir(folder))
        counts, swept, left = {1: 0, 2: 0}, 0, 0
        for index in range(rounds):
            _put(old, path)
            _kill(path, weights[2], (index + 0.5) / rounds * seconds * BEYOND)
            counts[version_of(path)] += 1
            swept += len(os.listdir(folder)) > len(names)
            export(path, 3, weights[3])
            left += sorted(os.listdir(folder)) != names
    print(
        f"an export takes {seconds:.2f} s; {rounds} killed within {seconds * BEYOND:.2f} s: ",
        end="",
    )
    print(f"{counts[1]} old, {counts[2]} new; {swept} left a folder, {left} after the next export")
    return int(not counts[1] or not counts[2] or left > 0)


def _export_seconds(path: Path, weights: Path) -> float:
    start = time.monotonic()
    assert start_export(path, 2, weights).wait() == 0
    return time.monotonic() - start


def _put(old: Path, path: Path) -> None:
    path.unlink()
    os.link(old, path)


def _kill(path: Path, weights: Path, seconds: float) -> None:
    process = start_export(path, 2, weights)
    time.sleep(seconds)
    process.kill()
    process.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
