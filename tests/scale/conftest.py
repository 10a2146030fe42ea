"""A model, a folder of pictures, and a store; each test has its own store."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import packer
import runtime
from packer.project import read_project

from ..support.paths import EXAMPLES

SUPPORT = Path(__file__).parents[1] / "support"
WEIGHTS_NBYTES = 24 << 20
SOURCE = """
#include <stdint.h>
#include <unistd.h>
int64_t twice(int64_t x) { return 2 * x; }
int64_t pid(void) { return getpid(); }
int64_t answer(void) { return 42; }
"""
FUNCTIONS = {
    "twice": "int64_t(int64_t x)",
    "pid": "int64_t(void)",
    "answer": "int64_t(void)",
}


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The store of one test, in the environment of all processes that it starts."""
    monkeypatch.setenv("DSO_CACHE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture(scope="session")
def weighty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with weights that are larger than a Python."""
    root = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    root.import_module(runtime.ConstLoaderModule({"w": os.urandom(WEIGHTS_NBYTES)}, {}))
    return packer.export_library(root, tmp_path_factory.mktemp("weighty") / "weighty.so")


@pytest.fixture(scope="session")
def resnet18(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of examples/resnet18, for this processor alone."""
    project = read_project(EXAMPLES / "resnet18" / "packer.toml")
    return packer.export_library(project.root, tmp_path_factory.mktemp("resnet18") / "deploy.so")


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures that differ."""
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(12)
    for number in range(12):
        coarse = random.integers(0, 256, (7, 9, 3), np.uint8)
        Image.fromarray(coarse).resize((320, 240)).save(folder / f"{number:02}.jpg")
    return folder


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tests/support/worker_tasks.py, as worker processes import it."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    return importlib.import_module("worker_tasks")
