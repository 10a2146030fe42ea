"""Importers: modules made from what others describe, such as a C header.

Each importer is a folder here and a row in `IMPORTERS`. Other packages add theirs as entry points
of the group ``dso_packer.importers``, named after the key in packer.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from runtime.error import ExportError, near_names

if TYPE_CHECKING:
    from ..modules.host import HostModule

GROUP = "dso_packer.importers"
# The key in packer.toml, and the function that makes the module; `from_header` shows its arguments.
IMPORTERS = {"header": ("header", "from_header")}


def find_importer(key: str) -> Callable[..., HostModule]:
    """Return the function that makes a module of a file.

    Raises
    ------
    ExportError
        If there is no such importer.
    """
    if key in IMPORTERS:
        folder, name = IMPORTERS[key]
        found: Any = getattr(import_module(f".{folder}", __name__), name)
        return found  # type: ignore[no-any-return]
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=key):
        made: Any = entry.load()
        return made  # type: ignore[no-any-return]
    raise ExportError(f"there is no importer {key!r}{near_names(key, list(IMPORTERS))}")
