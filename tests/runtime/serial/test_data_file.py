"""open_data: the tree of a library, while none of its code runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.relax import Program

from ...support.command_line import COMMAND
from ...support.models import WEIGHT, expected, model, safetensors

CONSTRUCTOR = """
#include <stdio.h>
__attribute__((constructor)) static void leave_a_mark(void) {
  FILE *file = fopen(MARK, "w");
  if (file != NULL) fclose(file);
}
int twice(int x) { return 2 * x; }
"""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that the code of `library` makes when it is loaded."""
    return tmp_path / "mark"


@pytest.fixture
def library(tmp_path: Path, mark: Path) -> Path:
    """A library with a constructor, which carries another one, beside weights."""

    def module() -> packer.CSourceModule:
        define = f'-DMARK="{mark}"'
        return packer.CSourceModule(CONSTRUCTOR, functions="auto", options=[define])

    inner = runtime.load(packer.export_library(module(), tmp_path / "inner.so"))
    root = module()
    root.import_module(inner)
    root.import_module(
        runtime.SafetensorsModule(safetensors({"w": np.arange(6, dtype=np.float32)}))
    )
    path = packer.export_library(
        root, tmp_path / "outer.so", output=packer.Output(metadata={"trained": "today"})
    )
    mark.unlink()
    return path


def test_constructors_do_not_run(library: Path, mark: Path) -> None:
    """Neither that of the library nor that of the library in it; load runs them."""
    opened = runtime.open_data(library)
    (weights,) = (m for m in opened.imported_modules if m.type_key == "safetensors")
    assert np.array_equal(weights.weights["w"], np.arange(6))
    assert [m.type_key for m in opened.imported_modules] == ["shared_library", "safetensors"]
    assert opened.metadata["trained"] == "today"
    assert not mark.exists()
    runtime.load(library)
    assert mark.exists()


@pytest.mark.parametrize(
    "words",
    [["inspect"], ["inspect", "--json"], ["check"], ["diff", "inner.so"], ["extract", "-o", "out"]],
    ids=" ".join,
)
def test_commands_that_look_do_not_run_it(library: Path, mark: Path, words: list[str]) -> None:
    """They read the file alone."""
    command = [*COMMAND, words[0], library.name, *words[1:]]
    done = subprocess.run(command, cwd=library.parent, capture_output=True, text=True, check=False)
    assert done.stdout
    assert "Traceback" not in done.stderr
    assert not mark.exists()


def test_functions_are_named_and_refused(library: Path) -> None:
    """The message says how to load them, and that works."""
    opened = runtime.open_data(library)
    assert opened.function_names() == ["twice"]
    advice = rf"its code is not loaded: runtime\.load\('{library}'\) loads it"
    with pytest.raises(runtime.FunctionNotFoundError, match=advice):
        opened["twice"]
    assert runtime.load(library)["twice"](21) == 42


def test_a_model_shows_what_a_load_shows(tmp_path: Path) -> None:
    """Inputs, outputs and weights by their names; its operators are missing."""
    path = packer.export_library(model(), tmp_path / "model.so")
    opened, loaded = runtime.open_data(path), runtime.load(path)
    assert (opened.inputs, opened.outputs) == (loaded.inputs, loaded.outputs)
    assert opened.type_key == loaded.type_key
    assert np.array_equal(opened.weights["dense.weight"], WEIGHT)
    x = np.ones((2, WEIGHT.shape[0]), np.float32)
    assert np.allclose(loaded["main"](x)[1], expected(x)[1])
    with pytest.raises(runtime.PackerError, match="calls 'dense_relu'"):
        opened["main"](x)


def test_a_program_without_host_code_runs(tmp_path: Path) -> None:
    """Its functions are the machine's own."""
    program = Program()
    main = program.function("main", ["x"])
    main.ret(main.call("vm.builtin.make_tuple", main.params[0], main.params[0]))
    path = packer.export_library(program.executable(), tmp_path / "model.so")
    assert tuple(runtime.open_data(path)["main"](7)) == (7, 7)


def test_a_library_of_another_machine_opens(tmp_path: Path) -> None:
    """Its data is the same; a load refuses it."""
    root = runtime.SafetensorsModule(safetensors({"w": np.arange(6, dtype=np.float32)}))
    path = packer.export_library(
        root, tmp_path / "arm.so", build=packer.Build(target="aarch64-linux-gnu")
    )
    assert np.array_equal(runtime.open_data(path).weights["w"], np.arange(6))
    if path.read_bytes()[18] != Path("/proc/self/exe").read_bytes()[18]:
        with pytest.raises(runtime.LibraryLoadError, match="aarch64|AArch64"):
            runtime.load(path)


def test_views_keep_the_file_mapped(tmp_path: Path) -> None:
    """The tensor is the only reference that is left, and the file is gone."""
    root = runtime.SafetensorsModule(safetensors({"w": np.arange(6, dtype=np.float32)}))
    path = packer.export_library(root, tmp_path / "model.so")
    weight = runtime.open_data(path).weights["w"]
    path.unlink()
    assert np.array_equal(weight, np.arange(6))


def test_standalone_files_open_as_they_load(tmp_path: Path) -> None:
    """They have no code."""
    path = tmp_path / "kernel.cl"
    path.write_text("__kernel void k(__global float *x) { x[0] = 1; }")
    assert runtime.open_data(path).type_key == "opencl"


@pytest.mark.parametrize("size", [0, 10, 63, 1000, -1])
def test_a_cut_file_is_refused_as_load_does(size: int, tmp_path: Path) -> None:
    """With the same words."""
    root = runtime.SafetensorsModule(safetensors({"w": np.arange(6, dtype=np.float32)}))
    path = packer.export_library(root, tmp_path / "model.so")
    path.write_bytes(path.read_bytes()[:size])
    messages = []
    for read in (runtime.load, runtime.open_data):
        with pytest.raises(runtime.LibraryLoadError) as raised:
            read(path)
        messages.append(raised.value.message)
    assert messages[0] == messages[1]


def test_a_changed_structure_is_refused(tmp_path: Path) -> None:
    """A key of the blob that became another one, as a load finds by its checksum."""
    root = runtime.SafetensorsModule(safetensors({"w": np.arange(6, dtype=np.float32)}))
    path = packer.export_library(root, tmp_path / "model.so")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"safetensors", b"const_loadxr"))
    for read in (runtime.load, runtime.open_data):
        with pytest.raises(runtime.PackerError, match="the file is damaged"):
            read(path)
