"""Module types of host code, which an export compiles."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runtime.module import Module

    # Exports a module to a path. `packer` sets it, since `packer.export` imports this folder.
    export: Callable[[Module, str], Path]
