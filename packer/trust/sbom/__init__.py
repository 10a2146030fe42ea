"""The bill of materials of a library: its parts with their digests, and the note about it.

__packer_sbom     a CycloneDX 1.6 document, beside the manifest
.note.package     the name and version, for tools that show crashes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...modules.host import CodeFile
    from ...records import Contents


def require_packages() -> None:
    """Refuse to continue without the packages; raises ExportError."""
    from .document import require_cyclonedx

    require_cyclonedx()


def bill_of(contents: Contents) -> bytes:
    """Write the bill of a library whose code was written, and was not linked yet."""
    from .document import document
    from .facts import link_options, parts_of

    link = contents.link
    properties = [("target", link.target.triple or "")]
    properties += [("level", level.name) for level in link.levels.levels]
    properties += [("link-option", word) for word in link_options(link)]
    parts = list(parts_of(contents.blob, contents.hosts, contents.files, link))
    return document(_name(contents), contents.output.metadata or {}, properties, parts)


def note_of(contents: Contents) -> CodeFile:
    """Write the object with the note into the private folder of the export."""
    from ...modules.host import CodeFile
    from .note import note_object, package_text

    machine = contents.link.target.machine
    path = contents.link.folder / "package.o"
    text = package_text(_name(contents), contents.output.metadata or {}, machine)
    path.write_bytes(note_object(text, machine))
    return CodeFile(path, "o", is_ours=True, is_checked=True)


def _name(contents: Contents) -> str:
    """Return the name of the library: that of the metadata, or else of its file."""
    given = (contents.output.metadata or {}).get("name")
    return given if isinstance(given, str) else contents.path.name
