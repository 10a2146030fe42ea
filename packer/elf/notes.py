"""Control-flow protection that the linker marked the whole file with: CET, BTI, PAC.

A note of type NT_GNU_PROPERTY_TYPE_0 and owner "GNU" holds properties. One of them, which one
depends on the machine, has a bit for each kind of protection. The linker keeps the bits that all
of its inputs have. (Linux gABI extensions, Program Property; psABIs)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..machine import BY_NUMBER
from .structures import NOTE, NT_GNU_PROPERTY_TYPE_0, PROPERTY, PT_GNU_PROPERTY, PT_NOTE

if TYPE_CHECKING:
    from ..machine import Machine
    from .image import Image

_OWNER = b"GNU\0"
GNU_PROPERTY_X86_ISA_1_NEEDED = 0xC0008002  # x86-64 psABI
_MAX_SEGMENTS, _MAX_NBYTES = 16, 1 << 16


def property_note(machine: Machine) -> bytes:
    """Return the note of an object with landing pads and shadow stacks; empty if unsupported."""
    if not machine.hardening:
        return b""
    bits = (1 << len(machine.marks)) - 1
    values = PROPERTY.pack(machine.and_property, 4) + bits.to_bytes(8, "little")
    return NOTE.pack(len(_OWNER), len(values), NT_GNU_PROPERTY_TYPE_0) + _OWNER + values


def read_branch_protection(image: Image) -> tuple[str, ...]:
    """Return the names of the marks; none if the note is damaged."""
    machine = BY_NUMBER.get(image.machine_number)
    if machine is None or not machine.marks:
        return ()
    bits = _property(image, machine.and_property)
    return tuple(name for bit, name in enumerate(machine.marks) if bits >> bit & 1)


def read_needed_level(image: Image) -> int:
    """Return the x86-64 level that a file says it needs: 1 to 4; 0 if it says none."""
    if image.machine != "x86_64":
        return 0
    return _property(image, GNU_PROPERTY_X86_ISA_1_NEEDED).bit_length()


def _property(image: Image, number: int) -> int:
    """Return the bits of a property; 0 without it."""
    notes = [s for s in image.segments if s.type in (PT_GNU_PROPERTY, PT_NOTE)]
    for segment in sorted(notes, key=lambda s: s.type == PT_NOTE)[:_MAX_SEGMENTS]:
        data = bytes(image.data[segment.offset :][: min(segment.nbytes, _MAX_NBYTES)])
        for pr_type, bits in _properties(data):
            if pr_type == number:
                return bits
    return 0


def _properties(notes: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while len(notes) - at >= NOTE.size:
        name_nbytes, nbytes, n_type = NOTE.unpack_from(notes, at)
        start = at + NOTE.size + name_nbytes + -name_nbytes % 4
        is_gnu = notes[at + NOTE.size : start] == _OWNER
        if is_gnu and n_type == NT_GNU_PROPERTY_TYPE_0:
            yield from _values(notes[start : start + nbytes])
        at = start + nbytes + -nbytes % 4


def _values(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while len(data) - at >= PROPERTY.size:
        pr_type, nbytes = PROPERTY.unpack_from(data, at)
        start = at + PROPERTY.size
        yield pr_type, int.from_bytes(data[start : start + min(nbytes, 8)], "little")
        at = start + nbytes + -nbytes % 8
