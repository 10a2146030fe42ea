"""Which files this process has mapped."""

from __future__ import annotations

from pathlib import Path


def is_mapped(path: Path) -> bool:
    """Return True if the file is mapped into this process."""
    return str(path) in Path("/proc/self/maps").read_text()
