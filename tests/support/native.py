"""The C files of the native core without Python."""

from __future__ import annotations

from pathlib import Path

from .paths import NATIVE

INCLUDE = (NATIVE, NATIVE.parent / "include")


def pure_sources() -> list[Path]:
    """Return the C files that do not use Python: all outside python/."""
    files = sorted(NATIVE.rglob("*.c"))
    return [path for path in files if path.relative_to(NATIVE).parts[0] != "python"]


def object_name(source: Path) -> str:
    """Return a name for the object file of a source: folders have files of equal names."""
    return "_".join(source.relative_to(NATIVE).with_suffix(".o").parts)
