"""Lay out sections of a file under construction one after another, with their headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..elf.structures import SHT_STRTAB, SectionHeader, Strings, align_up


class PlannedSection(NamedTuple):
    """A section with its bytes, not yet placed."""

    name: str
    type: int
    data: bytes
    flags: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entsize: int = 0


def lay_out(sections: Sequence[PlannedSection], start: int) -> tuple[list[SectionHeader], bytes]:
    """Place sections from a file offset on.

    Return the headers, the null section's first and ``.shstrtab`` last, without addresses; and the
    bytes, padded to a multiple of 8, so that the header table may follow.
    """
    names, body = Strings(), b""
    headers = [SectionHeader()]
    offsets = [names.add(section.name) for section in sections]
    last = names.add(".shstrtab")
    for name, section in zip(
        [*offsets, last], [*sections, PlannedSection("", SHT_STRTAB, names.data)], strict=True
    ):
        body += bytes(-(start + len(body)) % section.align)
        headers.append(
            SectionHeader(
                sh_name=name,
                sh_type=section.type,
                sh_flags=section.flags,
                sh_offset=start + len(body),
                sh_size=len(section.data),
                sh_link=section.link,
                sh_info=section.info,
                sh_addralign=section.align,
                sh_entsize=section.entsize,
            )
        )
        body += section.data
    return headers, body + bytes(align_up(start + len(body), 8) - start - len(body))
