"""Every example runs as it claims; so does every example in a docstring."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .support import needs
from .support.paths import DOCS, EXAMPLES, ROOT

README = ROOT / "README.md"
PHOTO = EXAMPLES / "photo"

CODE = """
#include <stdint.h>
int64_t scale(int64_t a, int64_t b) { return a * b; }
int32_t answer(void) { return 42; }
"""
FUNCTIONS = {"scale": "int64_t(int64_t a, int64_t b)", "answer": "int32_t(void)"}


def run(script: Path, *arguments: object, cwd: Path) -> str:
    """Run an example as a user does, warnings as errors, and return its output."""
    command = [sys.executable, "-W", "error", str(script), *map(str, arguments)]
    # The packages under test, wherever they are installed; scripts may import files of their
    # folder.
    environment = {**os.environ, "PYTHONPATH": str(Path(packer.__file__).parents[1])}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def imported(script: Path) -> ModuleType:
    """Return a script as a module that is not registered."""
    spec = importlib.util.spec_from_file_location(f"example_{script.stem}", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def loader() -> ModuleType:
    """examples/loader.py, which imports nothing of the project."""
    return imported(EXAMPLES / "loader.py")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library whose tree is a diamond: host code, two device modules, constants."""
    root = packer.CSourceModule(CODE, functions=FUNCTIONS)
    constants = runtime.ConstLoaderModule({"w": np.arange(6, dtype=np.float32)}, {"scale": ["w"]})
    for type_key in ("opencl", "cuda"):
        device = runtime.DeviceModule(type_key, "source", "cl", [runtime.FunctionInfo("kernel")])
        device.import_module(constants)
        root.import_module(device)
    return packer.export_library(root, tmp_path / "diamond.so")


def nested(module: runtime.Module) -> tuple[str, list[Any]]:
    """The tree below a module as (type_key, imports)."""
    key = "_lib" if module.type_key == "library" else module.type_key
    return key, [nested(imported) for imported in module.imported_modules]


def nested_nodes(nodes: list[tuple[str, list[int]]], index: int = 0) -> tuple[str, list[Any]]:
    """The nodes as the loader of 60 lines reads them."""
    key, children = nodes[index]
    return key, [nested_nodes(nodes, child) for child in children]


def test_loader_reads_the_tree(loader: ModuleType, library: Path) -> None:
    """Sixty lines of ctypes and pyelftools see the same modules and imports as the runtime."""
    nodes = loader.load_tree(str(library))
    assert nodes == [("_lib", [1, 2]), ("opencl", [3]), ("cuda", [3]), ("const_loader", [])]
    assert nested_nodes(nodes) == nested(runtime.load(library))


def test_loader_reads_a_library_without_imports(loader: ModuleType, tmp_path: Path) -> None:
    """Host code alone has no blob: the library is the tree."""
    path = packer.export_library(packer.CSourceModule(CODE, functions=FUNCTIONS), tmp_path / "a.so")
    assert loader.load_tree(str(path)) == [("_lib", [])]


@pytest.mark.parametrize(
    ("name", "ints", "expected"), [("scale", (6, -7), -42), ("answer", (), 42)]
)
def test_loader_calls(
    loader: ModuleType, library: Path, name: str, ints: tuple[int, ...], expected: int
) -> None:
    """A call by hand through the safe-call ABI returns the result of the runtime."""
    assert expected == loader.call(str(library), name, *ints)
    assert expected == runtime.load(library)[name](*ints)


def test_loader_reports_a_raised_error(loader: ModuleType, library: Path) -> None:
    """A wrapper refuses a wrong number of arguments without any runtime, by its result alone."""
    with pytest.raises(RuntimeError, match="scale raised an error"):
        loader.call(str(library), "scale", 1)


def test_loader_runs_as_a_script(library: Path) -> None:
    """From the command line it prints the tree, or the result of a call; a bare name is a file."""
    script = EXAMPLES / "loader.py"
    assert run(script, library.name, cwd=library.parent).startswith("[('_lib', [1, 2]), ('opencl'")
    assert run(script, library.name, "scale", 6, 7, cwd=library.parent) == "42\n"


def test_loader_keeps_its_promise() -> None:
    """At most sixty lines, and nothing of the project imported."""
    text = (EXAMPLES / "loader.py").read_text()
    assert len(text.splitlines()) <= 60
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in imports if "packer" in line or "runtime" in line]


def test_own_type_travels(tmp_path: Path) -> None:
    """The labels are restored in a fresh process, together with their host code."""
    output = run(EXAMPLES / "own_type.py", cwd=tmp_path)
    assert "exported: classifier.so" in output
    assert "[<Labels 'example.labels'>]" in output
    assert output.endswith("= 1: 'dog'\n")


def test_quickstart(tmp_path: Path) -> None:
    """Three kinds of modules become one library, and are called."""
    output = run(EXAMPLES / "quickstart.py", cwd=tmp_path)
    assert output == "42 [<DeviceModule 'opencl'>]\n"
    assert (tmp_path / "model.so").exists()


def test_samplerate(tmp_path: Path) -> None:
    """A library of Debian is exported from its header, and resamples a sine."""
    needs.header("samplerate.h", "libsamplerate0-dev")
    output = run(EXAMPLES / "samplerate" / "resample.py", cwd=tmp_path)
    assert "4410 -> 4800 frames\n" in output
    assert float(output.rpartition(": ")[2]) < 0.001


def test_readme_example(tmp_path: Path) -> None:
    """The README's Python code runs unchanged."""
    script = tmp_path / "readme.py"
    script.write_text(README.read_text().split("```python\n")[1].split("```")[0])
    assert run(script, cwd=tmp_path).startswith("42 ")


def test_round_trips_page(tmp_path: Path) -> None:
    """The code on docs/roundtrip.md runs from its top to its end, PyTorch's part where that is."""
    code = (DOCS / "roundtrip.md").read_text().split("```python\n")[1:]
    parts = [part.split("```")[0] for part in code]
    script = tmp_path / "page.py"
    has_torch = importlib.util.find_spec("torch") is not None
    script.write_text("".join(parts if has_torch else parts[:-1]))
    assert "is host code" in run(script, cwd=tmp_path)


@pytest.mark.parametrize("page", ["devices.md", "host-code.md", "tensors.md"])
def test_pages_that_run(page: str, tmp_path: Path) -> None:
    """The code on a page runs from its top to its end, on a real device."""
    needs.opencl_device()
    code = (DOCS / page).read_text().split("```python\n")[1:]
    script = tmp_path / "page.py"
    script.write_text("".join(part.split("```")[0] for part in code))
    run(script, cwd=tmp_path)


def test_photo_demo(loader: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo packs a copy of its folder, checks a photograph, draws it; without a device, too."""
    needs.opencl_device()
    folder = tmp_path / "photo"
    folder.mkdir()
    for file in PHOTO.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    output = run(folder / "demo.py", cwd=tmp_path)
    assert "photo.palette > const_loader > library > opencl" in output
    assert output.count("greatest difference") == 3
    assert "kernel ran on opencl:0: " in output
    files = [folder / "out" / name for name in ("photo.so", "photo.npy", "result.npz")]
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    output = run(folder / "run.py", *files, cwd=folder)
    assert "no kernel ran: opencl:0: no OpenCL device found" in output
    assert sorted(np.load(files[2])) == ["colours", "edges", "gray", "names"]
    assert (folder / "out" / "picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    nodes = loader.load_tree(str(folder / "out" / "photo.so"))
    assert [key for key, _ in nodes] == ["photo.palette", "const_loader", "_lib", "opencl"]


def test_filter_bank_has_the_values_of_the_script() -> None:
    """The numbers in filters.npy equal build.py's."""
    filters = imported(PHOTO / "build.py").filters()
    np.testing.assert_allclose(np.load(PHOTO / "filters.npy"), filters, rtol=1e-6)


def own_modules() -> list[str]:
    """The names of all modules, but for the commands' entry points."""
    names = ["packer", "runtime"]
    for package in (packer, runtime):
        prefix = f"{package.__name__}."
        names += [found.name for found in pkgutil.walk_packages(package.__path__, prefix)]
    return sorted(name for name in names if not name.endswith(("__main__", "._core")))


@pytest.mark.parametrize("name", own_modules())
def test_docstring_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example in a docstring has the output that it shows."""
    if name == "runtime.torch":
        needs.module("torch", "torch")
    if name == "packer.packaging.hooks.hatch_build":
        needs.module("hatchling", "wheel-tools")
    if name == "packer.importers.header":
        needs.header("zlib.h", "zlib1g-dev")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_hello_in_c(tmp_path: Path) -> None:
    """The commands of its README.md; the program prints a result and a weight."""
    folder = tmp_path / "c"
    shutil.copytree(EXAMPLES / "c", folder)
    packer_of = [sys.executable, "-m", "packer"]

    def output(*command: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(Path(packer.__file__).parents[1])}
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    output(*packer_of, "export")
    flags = output(*packer_of, "config", "--cflags", "--libs", "--static").split()
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    output("cc", *warnings, "hello.c", *flags, "-o", "hello")
    assert output("./hello").splitlines() == [
        "predict([1, 2, 3]) = 8.5",
        "layer1.weight has 3 values, the first is 0.5",
    ]
    (folder / "model.so").unlink()
    missing = subprocess.run("./hello", cwd=folder, capture_output=True, text=True)
    assert (missing.returncode, missing.stdout.split(":")[0]) == (1, "LibraryLoadError")
