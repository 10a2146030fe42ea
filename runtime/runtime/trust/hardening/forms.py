"""Recognise the start-up code of compilers: functions of which every byte is known.

A compiler's start-up files (crti.o, crtbeginS.o) add functions to every library, which the loader
calls. Symbols name them, but a name proves nothing, and a stripped library has none. So a function
is accepted if its bytes match a known form, and refused otherwise; no instruction is
interpreted. A linker fills addresses into a form: these are its holes, and each one says what its
address may point to.

The text of a form has hexadecimal numbers and holes, ``{encoding target}``. The encoding says how
the instructions contain the address (`encodings`). The targets are:

============= =====================================================================
got NAME      8 bytes that the loader fills with the address of another library's NAME
plt NAME      a stub that jumps to NAME
form NAME     a function of this form
handle        8 bytes that the loader fills with their own address (``__dso_handle``)
flag, object  1 and 64 zeroed bytes, which nothing else uses
slots         ``num_slots`` addresses of this library's code, which the loader does not call
tables N      read-only: N bytes for each of ``num_levels``, and 4 for each of their slots
frames        tables for unwinding this library's functions, and no others
own           an address in this library
clones        any address: the form compares it with itself
page          the upper bits of an address, which later holes complete
any, num_*    any number
============= =====================================================================

Holes of a form with equal targets contain equal addresses.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ...elf import EM_AARCH64, EM_RISCV, EM_X86_64, PF_W, PF_X
from .image import PACKED
from .unwinding import describes_own_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .encodings import Machine
    from .image import Image, Relocation

_ZEROED = {"flag": 1, "object": 64}


class OwnCodeError(Exception):
    """The code is not the start-up code of a known compiler."""


class Hole(NamedTuple):
    """A place for an address in a form."""

    encoding: str
    target: str
    name: str


class StartUp:
    """The functions of a library that its loader calls."""

    def __init__(self, image: Image, machine: Machine) -> None:
        self._image, self._machine = image, machine
        self._stores: set[tuple[int, int, str]] = set()

    def check(self, form: str, address: int) -> None:
        """Compare the code at an address with the alternatives of a form.

        Raises OwnCodeError if no alternative matches, ValueError if the file is damaged.
        """
        self._match(form, address, "")

    def _match(self, form: str, address: int, name: str) -> None:
        reason = OwnCodeError("is not the start-up code of a known compiler")
        for pieces in _alternatives(self._image.machine_number, form):
            found = self._holes(pieces, address)
            if found is None:
                continue
            try:
                numbers = {hole.target: value for hole, value in found.items()}
                for hole, value in found.items():
                    self._check_hole(hole, value, name, numbers)
            except OwnCodeError as error:
                reason = error
            else:
                return
        raise reason

    def _holes(self, pieces: tuple[bytes | Hole, ...], place: int) -> dict[Hole, int] | None:
        """Return what the holes of a form contain; None if the code has another form."""
        found: dict[Hole, int] = {}
        page = 0
        for piece in pieces:
            if isinstance(piece, bytes):
                if self._code(place, len(piece)) != piece:
                    return None
                place += len(piece)
                continue
            for encoding in self._machine.encodings[piece.encoding]:
                code = int.from_bytes(self._code(place, encoding.nbytes), "little")
                if code & encoding.mask == encoding.bits:
                    break
            else:
                return None
            address = encoding.address(place, code, page)
            place += encoding.nbytes
            if piece.target == "page":
                page = address
            elif found.setdefault(piece._replace(encoding=""), address) != address:
                return None
        return found

    def _code(self, place: int, nbytes: int) -> bytes:
        """Return bytes that are code, and that nothing writes to; fewer at the end of the code."""
        segment = self._image.segment_at(place)
        if segment is None or not segment.flags & PF_X or segment.flags & PF_W:
            return b""
        left = segment.address + segment.nbytes - place
        return bytes(self._image.at(place, max(0, min(nbytes, left))))

    def _check_hole(self, hole: Hole, address: int, outer: str, numbers: Mapping[str, int]) -> None:
        target, name = hole.target, hole.name or outer
        if target == "got":
            self._check_filled(address, name)
        elif target in ("plt", "form"):
            self._match("plt" if target == "plt" else name, address, name)
        elif target == "handle":
            found = self._image.relocations_at(address)
            if len(found) != 1 or self._relative(found[0]) != address or found[0].place != address:
                raise OwnCodeError(f"finalises another library than itself, by {address:#x}")
        elif target in _ZEROED:
            self._check_zeroed(address, _ZEROED[target], target)
        elif target == "slots":
            self._check_slots(address, 8 * numbers["num_slots"])
        elif target == "tables":
            nbytes = numbers["num_levels"] * (int(name) + 4 * numbers["num_slots"])
            if len(self._code(address, nbytes)) != nbytes:
                raise OwnCodeError(f"reads {nbytes} bytes at {address:#x}, which are not all code")
        elif target == "own" and self._image.segment_at(address) is None:
            raise OwnCodeError(f"finalises another library than itself, by {address:#x}")
        elif target == "frames" and not describes_own_code(self._image, address):
            raise OwnCodeError(f"registers tables at {address:#x} for unwinding other code")

    def _check_filled(self, address: int, name: str) -> None:
        """Refuse 8 bytes which the loader fills with something else than a function's address."""
        found = self._image.relocations_at(address)
        if len(found) != 1 or found[0].place != address:
            raise OwnCodeError(f"calls what is stored at {address:#x}")
        if found[0].type not in self._machine.symbolic:
            raise OwnCodeError(f"calls another address than that of {name!r}")
        symbol = self._image.symbol(found[0].symbol)
        if symbol.section != 0 or found[0].addend != 0 or symbol.name != name:
            raise OwnCodeError(f"calls {symbol.name!r}")

    def _check_slots(self, address: int, nbytes: int) -> None:
        """Refuse to store addresses anywhere but in pointers to code that only this code uses."""
        image = self._image
        found = sorted(image.relocations_at(address, nbytes))
        places = [relocation.place for relocation in found]
        values = [self._relative(relocation) for relocation in found]
        segments = [image.segment_at(value) if value else None for value in values]
        is_code = all(segment is not None and segment.flags & PF_X for segment in segments)
        is_each = 8 * len(places) == nbytes and [*range(address, address + nbytes, 8)] == places
        if not is_each or not is_code:
            raise OwnCodeError(f"stores at {address:#x}, expected addresses of code there")
        for start, size in image.arrays():
            if start < address + nbytes and address < start + size:
                raise OwnCodeError(f"stores at {address:#x}, whose functions the loader calls")

    def _check_zeroed(self, address: int, nbytes: int, target: str) -> None:
        """Refuse to store where the file or the loader stores something."""
        segment = self._image.segment_at(address, nbytes)
        if segment is None or not segment.flags & PF_W:
            raise OwnCodeError(f"stores at {address:#x}, which is not a variable")
        if address < segment.address + segment.nbytes:
            raise OwnCodeError(f"stores at {address:#x}, which is not a zeroed variable")
        self._stores.add((address, nbytes, target))
        overlapping = [1 for at, n, _ in self._stores if at < address + nbytes and address < at + n]
        if self._image.relocations_at(address, nbytes) or len(overlapping) > 1:
            raise OwnCodeError(f"stores at {address:#x}, which has another use")

    def _relative(self, found: Relocation) -> int | None:
        return relative_value(self._image, self._machine, found)


def relative_value(image: Image, machine: Machine, found: Relocation) -> int | None:
    """Return base + addend of a relocation, with 0 as base; None for other relocations."""
    if found.type == PACKED:
        return image.word(found.place)
    return found.addend if found.type == machine.relative else None


@cache
def machines() -> Mapping[int, Machine]:
    """Return the known machines by their number (e_machine)."""
    from .forms_aarch64 import AARCH64
    from .forms_riscv import RISCV
    from .forms_x86_64 import X86_64

    return {EM_X86_64: X86_64, EM_AARCH64: AARCH64, EM_RISCV: RISCV}


@cache
def called(form: str) -> tuple[str, ...]:
    """Return the functions of other libraries that a form of any machine calls, with its parts."""
    holes = [
        piece
        for number in machines()
        for pieces in _alternatives(number, form)
        for piece in pieces
        if isinstance(piece, Hole)
    ]
    names = {hole.name for hole in holes if hole.target in ("got", "plt") and hole.name}
    inner = {name for hole in holes if hole.target == "form" for name in called(hole.name)}
    return tuple(sorted(names | inner))


@cache
def _alternatives(machine: int, form: str) -> tuple[tuple[bytes | Hole, ...], ...]:
    texts = machines()[machine].forms.get(form, ())
    return tuple(_pieces(text, machines()[machine].is_words) for text in texts)


def _pieces(text: str, is_words: bool) -> tuple[bytes | Hole, ...]:
    """Parse the text of a form."""
    pieces: list[bytes | Hole] = []
    for index, part in enumerate(text.replace("}", "{").split("{")):
        if index % 2:
            encoding, target, *name = part.split()
            pieces.append(Hole(encoding, target, *name or [""]))
        elif words := [bytes.fromhex(word) for word in part.split()]:
            pieces.append(b"".join(word[::-1] if is_words else word for word in words))
    return tuple(pieces)
