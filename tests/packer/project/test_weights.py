"""Weights from safetensors files through an export to a loaded library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import safetensors.numpy

import packer
import runtime
from packer.project import project_of_sources, read_project

from ...support.process import run_python

CODE = """
#include <stdint.h>
float dot(const float *x, const float *y, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
"""
DOT = "float(const float *x, const float *y, int64_t n)"
FIRST = {"a": numpy.arange(6, dtype="f4").reshape(2, 3), "n": numpy.arange(3)}
SECOND = {"a": numpy.zeros(1, "f4"), "b": numpy.ones(4, "f2")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Host code, and two files of weights that share a name."""
    (tmp_path / "dot.c").write_text(CODE)
    safetensors.numpy.save_file(FIRST, tmp_path / "1.safetensors")
    safetensors.numpy.save_file(SECOND, tmp_path / "2.safetensors")
    return tmp_path


def export(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run ``packer export``; return its output."""
    run = subprocess.run(
        [sys.executable, "-m", "packer", "export", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, bool(run.stderr)) == (code, bool(code)), run.stderr
    return run.stderr if code else run.stdout


def check_weights(module: runtime.Module) -> None:
    """Both files are there, and of the shared name the first."""
    expected = {**SECOND, **FIRST}
    assert set(module.weights) == set(expected)
    for name, array in expected.items():
        numpy.testing.assert_array_equal(module.weights[name].numpy(), array, strict=True)


def test_weights_are_stored_beside_host_code(folder: Path) -> None:
    """The library has functions and weights, and calls use the weights in place."""
    weights = ["--weights", "1.safetensors", "--weights", "2.safetensors"]
    line = export(folder, "model.so", "dot.c", "--function", f"dot={DOT}", *weights)
    assert "1 function, 3 modules" in line
    module = runtime.load(folder / "model.so")
    check_weights(module)
    a = module.weights["a"]
    assert module["dot"](a, a.numpy(), 6) == 55
    assert [m.type_key for m in module.imported_modules] == ["safetensors", "safetensors"]


def test_weights_go_without_host_code(folder: Path) -> None:
    """Without host code the first file is the root."""
    export(folder, "w.so", "--weights", "1.safetensors", "--weights", "2.safetensors")
    module = runtime.load(folder / "w.so")
    assert isinstance(module, runtime.SafetensorsModule)
    check_weights(module)


def test_weights_go_with_nothing_on_the_path(folder: Path) -> None:
    """The export needs no compiler, no linker, and no variable that names one."""
    command = [sys.executable, "-m", "packer", "export", "w.so", "--weights", "1.safetensors"]
    subprocess.run(command, cwd=folder, env={"PATH": ""}, check=True, capture_output=True)
    assert set(runtime.load(folder / "w.so").weights) == set(FIRST)


def test_weights_go_by_packer_toml(folder: Path) -> None:
    """A module of the kind takes one file or several."""
    (folder / "packer.toml").write_text(
        '[library]\noutput = "model.so"\n[module.host]\nkind = "c"\nsources = ["dot.c"]\n'
        f'functions.dot = "{DOT}"\nimports = ["weights"]\n'
        '[module.weights]\nkind = "safetensors"\nsources = ["1.safetensors", "2.safetensors"]\n'
    )
    export(folder)
    check_weights(runtime.load(folder / "model.so"))
    inputs = read_project(folder / "packer.toml").inputs.paths
    assert [path.name for path in inputs] == [
        *("packer.toml", "1.safetensors", "2.safetensors", "dot.c"),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["m.so", "--weights", "none.safetensors"], 1, "none.safetensors: cannot be read: No such"),
        (["m.so", "--weights", "dot.c"], 1, "dot.c: safetensors at 0x0: a safetensors header of"),
        (["m.so", "1.safetensors"], 1, "weights are given by --weights 1.safetensors"),
        (["--weights", "1.safetensors"], 1, "no output"),
        (
            ["1.safetensors", "--weights", "1.safetensors"],
            1,
            "the name of weights, expected an out",
        ),
        (
            ["2.safetensors", "dot.c"],
            1,
            "2.safetensors: is the name of weights, expected an output",
        ),
        (["dot.c", "--weights", "1.safetensors"], 1, "dot.c: is the name of a source, expected an"),
        (
            ["m.so", "--weights", "1.safetensors", "--project", "p"],
            2,
            "not allowed with SOURCE or --weights",
        ),
    ],
)
def test_mistake_is_reported(folder: Path, arguments: list[str], code: int, expected: str) -> None:
    """No file is written, and no weights are overwritten."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert expected in export(folder, *arguments, code=code)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_output_that_is_the_weights_is_refused(folder: Path) -> None:
    """The file stays unchanged, through the Python interface and under another name, too."""
    path, link = folder / "1.safetensors", folder / "link.so"
    before = path.read_bytes()
    link.symlink_to(path)
    for output in (path, link):
        with pytest.raises(packer.ExportError, match="is also an input; choose a different output"):
            packer.export_library(runtime.SafetensorsModule(path), output)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("header_nbytes", "multiple"), [(64 * 3, 4096), (64 * 3 + 8, 64)])
def test_large_weights_have_the_page_offset_of_their_file(
    header_nbytes: int, multiple: int, tmp_path: Path
) -> None:
    """Where its data is 64-aligned, too: the kernel can copy that, and share the blocks."""
    tensor = {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}
    header = json.dumps({"w": tensor}).encode().ljust(header_nbytes - 8)
    data = bytes(range(256)) * 4096
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header + data)
    path = packer.export_library(runtime.SafetensorsModule(weights), tmp_path / "w.so")
    whole = path.read_bytes()
    assert whole.count(header) == 1
    assert whole.index(data) % 64 == 0
    assert (whole.index(header) - 8) % multiple == -(header_nbytes % 64) % multiple
    assert bytes(memoryview(runtime.load(path).weights["w"])) == data


def test_bad_file_in_packer_toml_is_placed(folder: Path) -> None:
    """File, table, and the problem of the weights."""
    (folder / "packer.toml").write_text(
        '[module.w]\nkind = "safetensors"\nsources = ["1.safetensors", "bad.safetensors"]\n'
    )
    (folder / "bad.safetensors").write_bytes(b"\2" + bytes(7) + b"{}?")
    with pytest.raises(
        packer.ExportError, match=r"\[module\.w\]: .*bad\.safetensors: .* at 0xa: 1"
    ):
        read_project(folder / "packer.toml")


def test_inspect_lists_the_tensors(folder: Path) -> None:
    """Names, dtypes and shapes in the report; their number in the tree."""
    project = project_of_sources([], {}, [folder / "1.safetensors"])
    report = packer.inspect_library(packer.export_library(project.root, folder / "w.so"))
    [module] = json.loads(json.dumps(report.to_dict()))["modules"]
    assert sorted(module["tensors"], key=lambda tensor: tensor["name"]) == [
        {"name": "a", "dtype": "float32", "shape": [2, 3], "nbytes": 24},
        {"name": "n", "dtype": "int64", "shape": [3], "nbytes": 24},
    ]
    assert "bytes, 2 tensors" in packer.inspect.render(report)


def test_load_of_weights_takes_no_memory(folder: Path) -> None:
    """64 MiB of weights: a load, and views of their first and last bytes, leave RSS as it was."""
    nbytes = 64 << 20
    header = json.dumps({"w": {"dtype": "U8", "shape": [nbytes], "data_offsets": [0, nbytes]}})
    path = folder / "large.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    os.truncate(path, path.stat().st_size + nbytes)
    project = project_of_sources([], {}, [path])
    library = packer.export_library(project.root, folder / "large.so")
    code = (
        "import json, sys, runtime, runtime.blob, runtime.modules.safetensors\n"
        "def resident():\n"
        "    with open('/proc/self/statm') as file: return int(file.read().split()[1])\n"
        "before = resident()\n"
        "w = runtime.load(sys.argv[1]).weights['w']\n"
        "print(json.dumps([w.raw[0], w.raw[-1], w.nbytes, resident() - before]))"
    )
    *found, pages = run_python(code, str(library), blocked=("numpy", "packer"))
    assert found == [0, 0, nbytes]
    assert pages * os.sysconf("SC_PAGE_SIZE") < 1 << 20


EDGES = [0, 1, *(edge + by for edge in (4096, 1 << 31, 1 << 32) for by in (-1, 0, 1))]
READ_ENDS = """
import json, runtime, sys
root = runtime.load(sys.argv[1])
array = root.weights["w"].numpy()
ends = [array[:4].tobytes().decode(), array[-4:].tobytes().decode()]
print(json.dumps([list(array.shape), *ends, array.ctypes.data % 64]))
"""


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "linked"])
@pytest.mark.parametrize("nbytes", EDGES)
def test_tensor_of_any_size_is_restored(nbytes: int, whole: bool, tmp_path: Path) -> None:
    """Around nothing, a page, 2 and 4 GiB: a sparse file, and the library stays sparse."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [nbytes], "data_offsets": [0, nbytes]}})
    path = tmp_path / "w.safetensors"
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header.encode() + b"head"[:nbytes])
        if nbytes > 4:
            file.seek(8 + len(header) + nbytes - 4)
            file.write(b"tail")
    root: runtime.Module = runtime.SafetensorsModule(path)
    if not whole:
        root = packer.CSourceModule(CODE, functions={"dot": DOT})
        root.import_module(runtime.SafetensorsModule(path))
    library = packer.export_library(root, tmp_path / "w.so")
    assert library.stat().st_blocks * 512 < 1 << 20
    head, tail = ("head", "tail") if nbytes > 4 else ("head"[:nbytes],) * 2
    assert run_python(READ_ENDS, str(library)) == [[nbytes], head, tail, 0]


READ_AND_WAIT = """
import runtime, sys
array = runtime.load(sys.argv[1]).weights["w"].numpy()
array.max()
print("read", flush=True)
sys.stdin.read()
found, kept = {}, False
for line in open("/proc/self/smaps"):
    first, *_, last = line.split()
    if not first.endswith(":"):
        start, end = (int(word, 16) for word in first.split("-"))
        kept = start <= array.ctypes.data < end
    elif kept and last == "kB":
        found[first] = int(line.split()[1]) << 10
print(found["Shared_Clean:"], found["Private_Clean:"] + found["Private_Dirty:"])
"""


def test_processes_share_the_memory_of_weights(folder: Path) -> None:
    """Two processes that have read all weights share all pages (proc(5), smaps)."""
    nbytes = 8 << 20
    array = numpy.frombuffer(os.urandom(nbytes), "u1")
    module = runtime.SafetensorsModule(safetensors.numpy.save({"w": array}))
    path = packer.export_library(module, folder / "w.so")
    command = [sys.executable, "-c", READ_AND_WAIT, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:  # type: ignore[call-overload]
        assert [one.stdout.readline(), other.stdout.readline()] == ["read\n"] * 2
        counted = one.communicate()[0]  # while the other still has them
        other.communicate()
    shared, own = map(int, counted.split())
    assert shared >= nbytes
    assert own == 0


def test_same_weights_give_the_same_library(folder: Path) -> None:
    """From a file and from its bytes, the bytes of the library are equal."""
    path = folder / "1.safetensors"
    sources: list[Path | bytes] = [path, path.read_bytes()]
    one, other = (
        packer.export_library(runtime.SafetensorsModule(source), folder / f"{i}.so").read_bytes()
        for i, source in enumerate(sources)
    )
    assert one == other
