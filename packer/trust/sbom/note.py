"""The note ``.note.package``: systemd's package metadata for ELF files, which coredumpctl shows.

A note of owner "FDO" and type 0xcafe1a7e; its text is JSON in UTF-8 that ends with a NUL.
(https://systemd.io/PACKAGE_METADATA_FOR_EXECUTABLE_FILES)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...elf import structures as elf
from ...elf.structures import Header, make_header, pack, size_of
from ...embed.placeholder import property_sections
from ...embed.section_layout import PlannedSection, lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...machine import Machine

SECTION = ".note.package"
OWNER = b"FDO\0"
TYPE = 0xCAFE1A7E


def package_text(name: str, metadata: Mapping[str, Any], machine: Machine) -> bytes:
    """Write the text of the note; the spec defines the names."""
    fields = {"type": "dso-packer", "name": name, "architecture": machine.name}
    for key in ("version", "license"):
        if key in metadata:
            fields[key] = metadata[key]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\0"


def note_object(text: bytes, machine: Machine) -> bytes:
    """Write an object that has the note, for a linker."""
    header = elf.NOTE.pack(len(OWNER), len(text), TYPE)
    note = header + OWNER + text + bytes(-len(text) % 4)
    sections = [
        PlannedSection(SECTION, elf.SHT_NOTE, note, flags=elf.SHF_ALLOC, align=4),
        *property_sections(machine),
        PlannedSection(".note.GNU-stack", elf.SHT_PROGBITS, b""),
    ]
    headers, body = lay_out(sections, size_of(Header))
    shoff, count = size_of(Header) + len(body), len(headers)
    made = make_header(elf.ET_REL, machine, num_programs=0, shoff=shoff, num_sections=count)
    return pack([made]) + body + pack(headers)
