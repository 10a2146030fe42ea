"""Fixtures of the tests of pickles by reference."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import packer
import runtime
from runtime.reference import resident

from ..interchanged import device, host


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A store of each test alone; no policy, and no module in use, before and after it."""
    monkeypatch.setenv("DSO_CACHE", str(tmp_path / "store"))
    monkeypatch.delenv("DSO_TRUST", raising=False)
    yield tmp_path / "store"
    runtime.set_pickle_policy(None)
    runtime.set_trust_policy(None)
    resident._kept.clear()
    gc.collect()


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library over a device module; its function gives 42."""
    root = host(42)
    root.import_module(device("kernel"))
    return packer.export_library(root, tmp_path_factory.mktemp("referenced") / "exported.so")


@pytest.fixture
def model(exported: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    path = tmp_path / "model.so"
    shutil.copy(exported, path)
    return path


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library whose function gives 43."""
    return packer.export_library(host(43), tmp_path_factory.mktemp("other") / "other.so")


def files(folder: Path) -> list[str]:
    """Every file below a folder, entries of digests aside."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.name for path in found if path.parent.name != "verified")


Files = Callable[[Path], list[str]]


@pytest.fixture
def stored_files() -> Files:
    """``stored_files(folder)``: the names of the files in a store."""
    return files
