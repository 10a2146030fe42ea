"""Shared by targets: seeds of bytes, inputs that are files, and a reader of a whole tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import runtime
from packer.inspect.payload import signatures_of
from runtime.module import preorder

from .edited_inputs import Seed, binary
from .judge import Target


class Library(runtime.Module):
    """Stands for the host code of a tree: it has every function."""

    type_key = "library"

    def find_function(self, name: str) -> Callable[..., Any]:
        """Find a function that does nothing."""
        return lambda *args: None


def of_seeds(name: str, seeds: Sequence[Seed], read: Callable[[bytes], Any]) -> Target:
    """A target of edited bytes."""
    return Target(name, binary(seeds), [seed.data for seed in seeds], read)


def words(data: bytes, size: int = 4, end: int | None = None) -> Seed:
    """A seed whose numbers are at every multiple of a size."""
    return Seed(data, tuple((at, size) for at in range(0, (end or len(data)) // size * size, size)))


def in_file(path: Path, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Write the input to a file, and read that."""

    def parse_file(data: bytes) -> Any:
        path.unlink(missing_ok=True)  # the pages of the old one may be mapped
        path.write_bytes(data)
        return read(path)

    return parse_file


def read_tree(root: runtime.Module) -> None:
    """Look at all that a tree has; nothing of it is called."""
    for module in preorder(root):
        repr(module)
        module.function_names()
        signatures_of(module)
        for tensor in module.own_weights.values():
            bytes(tensor.raw)
