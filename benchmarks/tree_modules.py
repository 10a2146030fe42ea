"""Load trees and use their modules, beside another installation of dso-runtime.

    tree_modules.py [PYTHON ...]

Each PYTHON is an interpreter with an installation; the first is the reference, and this one is the
last. Each row is the least processor time of a thread over rounds that alternate between them, in
microseconds; rows "first" are measured once in a process.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import getpagesize
from tempfile import TemporaryDirectory
from time import thread_time

ROUNDS = 7
COUNTS = (1, 10, 1000)
HOST = "long add(long a, long b) { return a + b; }"


def write_inputs(folder: Path) -> None:
    """Write libraries with trees, and the bytes of trees."""
    import packer
    import runtime

    info = [runtime.FunctionInfo(f"k{i}", ["handle"] * 4, ["blockIdx.x"]) for i in range(3)]

    def devices(count: int) -> list[runtime.Module]:
        return [runtime.DeviceModule("cuda", b"x" * 100, "ptx", info) for _ in range(count)]

    def host(imports: list[runtime.Module]) -> runtime.Module:
        root = packer.CSourceModule(HOST, functions={"add": "long(long a, long b)"})
        root.set_imports(imports)
        return root

    def write(name: str, imports: list[runtime.Module]) -> None:
        root = runtime.MetadataModule()
        root.set_imports(imports)
        (folder / name).write_bytes(runtime.serialize_module_to_bytes(root))

    for count in COUNTS:
        packer.export_library(host(devices(count)), folder / f"{count}.so")
        write(f"{count}.tree", devices(count))
    carried = runtime.load(packer.export_library(host([]), folder / "inner.so"))
    root = runtime.MetadataModule()
    root.set_imports([carried])
    packer.export_library(root, folder / "importer.so")
    chain = devices(1000)
    for module, imported in zip(chain, chain[1:], strict=False):
        module.set_imports([imported])
    write("chain.tree", chain[:1])
    arrays = {f"w{i}": runtime.Tensor(bytes(24), (2, 3), (2, 32, 1)) for i in range(1000)}
    write("arrays.tree", [runtime.ConstLoaderModule(arrays, {})])
    layouts = {
        f"w{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10_000)
    }
    header = json.dumps(layouts).encode()
    file = len(header).to_bytes(8, "little") + header
    write("safetensors.tree", [runtime.SafetensorsModule(file)])


def measure(folder: Path) -> Iterator[tuple[str, float]]:
    """The rows of one process, in the order in which they are measured."""
    imported = seconds(lambda: __import__("runtime"))
    import runtime

    kept = []
    loaded = seconds(lambda: kept.append(runtime.load(folder / "10.so")))
    listed = seconds(lambda: kept[0].imported_modules)
    yield "first: import runtime", imported
    yield "first: load a tree of 10", loaded
    yield "first: both, and its imports", imported + loaded + listed
    kept.clear()
    yield "memory of a module, bytes", memory((folder / "1000.tree").read_bytes())
    for count in COUNTS:
        yield f"load a tree of {count}", least(lambda: runtime.load(folder / f"{count}.so"))  # noqa: B023
    for count in COUNTS:
        yield from of_bytes(folder / f"{count}.tree", f"make {count} modules")
    yield from of_bytes(folder / "arrays.tree", "weights of 1,000 arrays")
    yield from of_bytes(folder / "safetensors.tree", "weights of 10,000 safetensors")
    chain = runtime.deserialize_module_from_bytes((folder / "chain.tree").read_bytes())
    yield "imports of a chain of 1,000", least(lambda: walk(chain))
    yield from of_function(folder)
    root = runtime.load(folder / "10.so")
    yield "pickle a tree of 10", least(lambda: pickle.loads(pickle.dumps(root)))


def of_bytes(path: Path, name: str) -> Iterator[tuple[str, float]]:
    """Make the modules of a tree, and find their weights."""
    from runtime import deserialize_module_from_bytes

    data = path.read_bytes()
    yield name, least(lambda: len(deserialize_module_from_bytes(data).weights))


def of_function(folder: Path) -> Iterator[tuple[str, float]]:
    """Look up and call a function of an imported library."""
    import runtime

    def find() -> float:
        root = runtime.load(folder / "importer.so")
        return seconds(lambda: root.get_function("add", query_imports=True))

    yield "look up an imported function", min(find() for _ in range(20))
    function = runtime.load(folder / "importer.so").get_function("add", query_imports=True)
    calls = range(10_000)
    yield "call it", least(lambda: [function(40, 2) for _ in calls]) / len(calls)


def walk(root: object) -> None:
    """List the imports of each module of a chain."""
    modules = [root]
    while modules:
        modules = modules[0].imported_modules  # type: ignore[attr-defined]


def memory(data: bytes) -> float:
    """The resident bytes of a module in trees of 1,000 modules."""
    from runtime import deserialize_module_from_bytes

    before = resident()
    kept = [deserialize_module_from_bytes(data) for _ in range(20)]
    return (resident() - before) / (1000 * len(kept))


def resident() -> int:
    """The resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def least(run: Callable[[], object]) -> float:
    """The least processor time of 20 runs."""
    return min(seconds(run) for _ in range(20))


def seconds(run: Callable[[], object]) -> float:
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
        unit = 1 if row.endswith("bytes") else 1e6
        columns = [f"{unit * best[p][row]:10.3f} {best[p][row] / reference:5.2f}" for p in pythons]
        print(f"{row:32} {'  '.join(columns)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(list(measure(Path(sys.argv[2])))))
    else:
        main([*sys.argv[1:], sys.executable])
