"""The bill of materials of a library: its parts with their digests, and the note about it.

__packer_sbom     a CycloneDX 1.6 document, beside the manifest
.note.package     the name and version, for tools that show crashes
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..files.text import path_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from runtime.blob import Blob

    from ..dialect import Naming
    from ..link import Link
    from ..modules.host import CodeFile, HostModule
    from ..target import Target


class Bill:
    """The bill of one export; empty if none is wanted.

    Parameters
    ----------
    is_wanted : bool
        False if the export writes none.
    output : path
        The library, whose name is that of the bill unless the metadata has a ``name``.
    suffix : str
        The kind of output.
    naming : Naming
        The names of the symbols.
    metadata : mapping or None
        The metadata of the library.

    Raises
    ------
    ExportError
        If one is wanted, and the output is no shared library or cyclonedx-python-lib is missing.
    """

    def __init__(
        self,
        is_wanted: bool,
        output: str | os.PathLike[str],
        suffix: str,
        naming: Naming,
        metadata: Mapping[str, Any] | None,
    ) -> None:
        self._is_wanted = is_wanted
        self._metadata = metadata or {}
        self._symbol = naming.sbom
        given = self._metadata.get("name")
        self._name = given if isinstance(given, str) else os.path.basename(output)
        if not is_wanted:
            return
        from .document import require_cyclonedx

        if suffix != "so" or naming.system_lib:
            found = "a system library" if naming.system_lib else f".{suffix}"
            raise path_error(output, f"sbom is for shared libraries, found {found}; drop it")
        require_cyclonedx()

    def records(
        self, blob: Blob, hosts: Sequence[HostModule], files: Sequence[CodeFile], link: Link
    ) -> dict[str, bytes]:
        """Return the document by its symbol; `files` are the code of the hosts."""
        if not self._is_wanted:
            return {}
        from .document import document
        from .facts import link_options, parts_of

        properties = [("target", link.target.triple or "")]
        properties += [("level", level.name) for level in link.levels.levels]
        properties += [("link-option", word) for word in link_options(link)]
        parts = list(parts_of(blob, hosts, files, link))
        return {self._symbol: document(self._name, self._metadata, properties, parts)}

    def files(self, folder: Path, target: Target) -> list[CodeFile]:
        """Write the object with the note into a private folder."""
        if not self._is_wanted:
            return []
        from ..modules.host import CodeFile
        from .note import note_object, package_text

        path = folder / "package.o"
        text = package_text(self._name, self._metadata, target.machine)
        path.write_bytes(note_object(text, target.machine))
        return [CodeFile(path, "o", is_ours=True, is_checked=True)]
