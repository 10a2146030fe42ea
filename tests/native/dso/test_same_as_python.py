"""libdso and Python's runtime see the same tree in every file, or refuse it with the same text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from ...fuzz.seeds import blobs, safetensors
from ...support.compile import compile_c
from ...support.dso_driver import shown_by_c, shown_by_python, shown_in_children
from ...support.graphs import factory, host, sum_graph
from ...support.paths import C_SOURCES, DATA, FOUND, TESTS
from ...support.system_models import model

DIALECTS = {"tvm": "__tvm_dev_mblob", "tvm-ffi": "__tvm_ffi__library_bin"}
RELEASED = sorted(DATA.glob("libraries_*/*.so"))
LIBRARIES = ("graph", "aot", "constants", "weights", "nested", "nothing")
NUM_MUTANTS = 120
ONES = np.ones((2, 3), "f4")
INIT = (
    "static const float *w; void __init_f(const float *x) { w = x; } float f(void) { return *w; }"
)


def assert_same(path: Path) -> None:
    """Compare what both show."""
    assert shown_by_c(path) == shown_by_python(path)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_type_in_both_dialects(dialect, pack_blob) -> None:
    """Each type of module alone, a tree of some, and half of the bytes of each."""
    for data in blobs(dialect):
        assert_same(pack_blob(data, symbol=DIALECTS[dialect]))
        assert_same(pack_blob(data[: len(data) // 2], symbol=DIALECTS[dialect]))


def library(name: str, folder: Path) -> Path:
    """Export one of LIBRARIES."""
    root: runtime.Module = runtime.MetadataModule()
    if name == "graph":
        root = factory(sum_graph(), {"w": ONES}, host())
    elif name == "aot":
        root = runtime.AotExecutorFactory({"w": ONES}, "net")
        compiled = compile_c((C_SOURCES / "aot.c").read_text(), folder / "aot.o", "-c")
        root.import_module(packer.StaticLibraryModule(compiled))
    elif name == "constants":
        root = runtime.ConstLoaderModule({"w": ONES}, {"f": ["w"]})
        declared = {"__init_f": "void(const float *x)", "f": "float(void)"}
        root.import_module(packer.CSourceModule(INIT, functions=declared))
    elif name == "weights":
        root = host()
        root.import_module(runtime.SafetensorsModule(safetensors()))
    elif name == "nested":
        root = host()
        root.import_module(runtime.load(library("weights", folder)))
    return packer.export_library(
        root, folder / f"{name}.so", entry="add" if name == "nested" else None
    )


@pytest.mark.parametrize("name", LIBRARIES)
def test_exported_library(name, tmp_path) -> None:
    """Host code with each kind of module that has separate code."""
    assert_same(library(name, tmp_path))


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_library_of_an_earlier_release(path: Path) -> None:
    """The files in the repository."""
    assert_same(path)


def test_system_library(tmp_path) -> None:
    """Models that a library registers when it is loaded; an unknown prefix has nothing."""
    objects = [model(tmp_path, number) for number in (1, 2)]
    path = packer.link_library(objects, tmp_path / "both.so")
    names = [path, "@net1_", "@net2_", "@net3_"]
    by_python = shown_in_children(names)
    assert [
        shown_by_c(name, path) if name != path else shown_by_c(path) for name in names
    ] == by_python
    assert "function add\n" in by_python[1]


def test_damaged_libraries() -> None:
    """Libraries that once crashed a loader. The code of some is damaged, and ends a process."""
    paths = sorted(FOUND.glob("*.so"))
    assert [shown_by_c(path) for path in paths] == shown_in_children(paths)


@pytest.fixture(scope="module")
def mutants(tmp_path_factory) -> list[Path]:
    """The first mutants of `make stress`."""
    folder = tmp_path_factory.mktemp("mutants")
    command = [sys.executable, TESTS / "stress" / "mutants.py", "--write", folder]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    subprocess.run([*command, "--count", str(NUM_MUTANTS)], env=environment, check=True)
    return sorted(folder.glob("*.so"))


def test_mutants(mutants) -> None:
    """Libraries of every linker and both dialects, with some bytes changed, but none of code."""
    assert len(mutants) == NUM_MUTANTS
    for path, by_python in zip(mutants, shown_in_children(mutants), strict=True):
        assert shown_by_c(path) == by_python, path.name
