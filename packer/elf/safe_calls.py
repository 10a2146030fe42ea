"""The functions that compiled code defines for loaders, as other compilers write them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from runtime.abi import FUNCTION_PREFIX
from runtime.error import ExportError

from .archive import MAGIC, read_archive, read_index
from .object_file import ObjectFile


def safe_calls(path: Path) -> list[str]:
    """Return the names ``f`` of the symbols ``__tvm_ffi_<f>`` that an object or archive defines.

    Names that begin with "_" do not name functions. A damaged file has none.
    """
    start = len(FUNCTION_PREFIX)
    names = {name[start:] for name in _defined(path) if name.startswith(FUNCTION_PREFIX)}
    return sorted(name for name in names if name and name[0] != "_")


def _defined(path: Path) -> Iterator[str]:
    with contextlib.suppress(OSError, ExportError):
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
        if head == MAGIC:
            for member in read_archive(path):
                yield from _exported(path, member.offset, member.nbytes)
        elif head.startswith(b"!<"):  # a thin archive
            yield from read_index(path)
        else:
            yield from _exported(path)


def _exported(path: Path, offset: int = 0, nbytes: int | None = None) -> Iterator[str]:
    with contextlib.suppress(ExportError):
        found = ObjectFile(path, offset=offset, nbytes=nbytes).definitions
        yield from (name for name, definition in found.items() if definition.is_exported)
