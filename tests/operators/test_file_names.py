"""Files of operators have names: the object cache finds their objects in another export."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime
from packer import operators


class Counted:
    """A progress that keeps how many sources had their objects, and of these from the cache."""

    def __init__(self) -> None:
        self.cached: list[int] = []

    def __call__(self, step: str) -> None:
        """Ignore the steps."""

    def sources(self, done: int, total: int, cached: int) -> None:
        """Keep the number of objects from the cache."""
        del done, total
        self.cached.append(cached)


def tree(*names: str) -> packer.CSourceModule:
    """C functions, each a module, with the operators after them."""
    first, *others = (
        packer.CSourceModule(f"int {name}(void) {{ return {i}; }}", functions="auto")
        for i, name in enumerate(names)
    )
    for module in (*others, *operators.modules("reorder")):
        first.import_module(module)
    return first


def test_another_tree_finds_the_objects_of_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their place in the tree does not matter."""
    monkeypatch.setenv("PACKER_CACHE", str(tmp_path / "objects"))
    packer.export_library(tree("f"), tmp_path / "a.so")
    progress = Counted()
    packer.export_library(tree("g", "h", "i"), tmp_path / "b.so", progress=progress)
    assert max(progress.cached) == len(operators.sources("reorder"))


def test_modules_of_one_name_are_different_files(tmp_path: Path) -> None:
    """The second one has a number."""
    module = tree("f", "g")
    for one in (module, *module.imported_modules):
        one.stem = "same"
    loaded = runtime.load(packer.export_library(module, tmp_path / "a.so"))
    assert (loaded["f"](), loaded["g"]()) == (0, 1)
