"""How instructions of a machine contain the address of something."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Encoding(NamedTuple):
    """One way to write a hole of a form.

    Attributes
    ----------
    nbytes : int
        The length of the instructions.
    mask, bits : int
        Which bits are fixed, and their values, in the little-endian number of all bytes.
    address : function
        The address, of the place of the first byte, that number, and the hole `page`.
    """

    nbytes: int
    mask: int
    bits: int
    address: Callable[[int, int, int], int]


class Machine(NamedTuple):
    """The start-up code of one machine.

    Attributes
    ----------
    relative, resolved : int
        The relocation types that store base + addend, and what a resolver returns.
    symbolic : tuple of int
        The relocation types that store the address of a symbol.
    forms : mapping of str to tuple of str
        The alternatives of each form, as texts (see `forms`).
    encodings : mapping of str to tuple of Encoding
        The alternatives of each encoding.
    is_words : bool
        True if the numbers of the texts are instructions, false if they are bytes.
    """

    relative: int
    resolved: int
    symbolic: tuple[int, ...]
    forms: Mapping[str, tuple[str, ...]]
    encodings: Mapping[str, tuple[Encoding, ...]]
    is_words: bool


def signed(value: int, low: int, width: int) -> int:
    """Return the bits from `low` on as a signed number."""
    number = value >> low & (1 << width) - 1
    return number - (number >> width - 1 << width)
