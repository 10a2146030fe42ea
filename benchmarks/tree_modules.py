"""Make the modules of trees, beside another installation of dso-runtime.

    tree_modules.py [PYTHON ...]

Each PYTHON is an interpreter with an installation; the first is the reference, and this one is the
last. Each row is the least processor time of a thread over rounds that alternate between them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time

import runtime

ROUNDS = 5


def write_inputs(folder: Path) -> None:
    """Write the bytes of trees, of a module of many arrays, and of many weights."""
    info = [runtime.FunctionInfo(f"k{i}", ["handle"] * 4, ["blockIdx.x"]) for i in range(3)]
    for count in (1, 10, 1000):
        devices = [runtime.DeviceModule("cuda", b"x" * 100, "ptx", info) for _ in range(count)]
        write(folder / f"tree of {count} modules", devices)
    arrays = {f"w{i}": runtime.Tensor(bytes(24), (2, 3), (2, 32, 1)) for i in range(1000)}
    write(folder / "constants, 1000 arrays", [runtime.ConstLoaderModule(arrays, {})])
    layouts = {
        f"w{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10_000)
    }
    header = json.dumps(layouts).encode()
    file = len(header).to_bytes(8, "little") + header
    write(folder / "safetensors, 10000 tensors", [runtime.SafetensorsModule(file)])


def write(path: Path, imports: list[runtime.Module]) -> None:
    """Write a tree of a root and its imports."""
    root = runtime.MetadataModule()
    root.set_imports(imports)
    path.write_bytes(runtime.serialize_module_to_bytes(root))


def measure(folder: Path) -> Iterator[tuple[str, float]]:
    """The seconds of making each tree, and its weights."""
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        yield path.name, min(seconds(lambda: use(data)) for _ in range(20))  # noqa: B023


def use(data: bytes) -> None:
    """Make the modules and find the weights."""
    _ = len(runtime.deserialize_module_from_bytes(data).weights)


def seconds(run: Callable[[], None]) -> float:
    """The processor time of this thread."""
    start = thread_time()
    run()
    return thread_time() - start


def main(pythons: list[str]) -> None:
    """Measure in each interpreter by turns, and print the least times and ratios."""
    best: dict[str, dict[str, float]] = {python: {} for python in pythons}
    with TemporaryDirectory() as name:
        write_inputs(Path(name))
        for python in pythons * ROUNDS:
            command = [python, "-P", __file__, "--measure", name]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            for row, found in json.loads(ran.stdout):
                best[python][row] = min(best[python].get(row, found), found)
    for row, reference in best[pythons[0]].items():
        times = [f"{1e6 * best[p][row]:9.1f} us {best[p][row] / reference:5.2f}" for p in pythons]
        print(f"{row:28} {'  '.join(times)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(list(measure(Path(sys.argv[2])))))
    else:
        main([*sys.argv[1:], sys.executable])
