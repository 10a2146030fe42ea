"""How instructions of a machine contain the address of something."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Encoding(NamedTuple):
    """One way to write a hole of a form."""

    nbytes: int  # of the instructions
    mask: int  # the fixed bits, in the little-endian number of all bytes
    bits: int  # their values
    # Computes the address from the place of the first byte, that number, and the hole `page`.
    address: Callable[[int, int, int], int]


class Machine(NamedTuple):
    """The start-up code of one machine."""

    relative: int  # the relocation type that stores base + addend
    resolved: int  # the type that stores what a resolver returns
    symbolic: tuple[int, ...]  # the types that store the address of a symbol
    forms: Mapping[str, tuple[str, ...]]  # the alternatives of each form, as texts
    encodings: Mapping[str, tuple[Encoding, ...]]  # the alternatives of each encoding
    is_words: bool  # the numbers of the texts are instructions, not bytes


def signed(value: int, low: int, width: int) -> int:
    """Return the bits from `low` on as a signed number."""
    number = value >> low & (1 << width) - 1
    return number - (number >> width - 1 << width)
