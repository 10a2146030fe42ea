"""Machines: processor architectures by their ELF numbers, with the facts of their psABIs.

The one table of machines: targets, the ELF readers and writers, and the reports use it.
"""

from __future__ import annotations

from typing import NamedTuple


class Relocations(NamedTuple):
    """Relocation types: base + addend, symbol + addend, and the result of an IFUNC resolver."""

    relative: int
    absolute: int
    irelative: int


class Machine(NamedTuple):
    """A processor architecture with the ABI of its Linux distributions."""

    name: str  # the first word of a triple, and what ``uname -m`` prints
    e_machine: int  # the fields of an ELF header
    relocations: Relocations  # their numbers (psABI)
    e_flags: int = 0  # the fields of an ELF header
    # The largest page that Linux uses there, in bytes; segments are aligned to it. 0: no library
    # can be exported for this machine.
    page_nbytes: int = 0
    features: str = ""  # what LLVM needs to generate code for it
    abi: str = ""  # likewise
    hardening: str = ""  # the compiler option for landing pads and shadow stacks
    # The pr_type of the GNU property whose bits all inputs of a link have in common.
    and_property: int = 0
    marks: tuple[str, ...] = ()  # the names of its bits, the lowest first: ``"IBT"``, ``"BTI"``
    char: str = "u8"  # what plain char is: ``"i8"`` or ``"u8"``


EM_RISCV = 243
_ALL = (
    Machine(
        "x86_64", 62, Relocations(8, 1, 37), page_nbytes=4096,
        hardening="-fcf-protection=full", and_property=0xC0000002, marks=("IBT", "SHSTK"),
        char="i8",
    ),
    Machine(
        "aarch64", 183, Relocations(1027, 257, 1032), page_nbytes=65536,
        hardening="-mbranch-protection=standard",
        and_property=0xC0000000, marks=("BTI", "PAC", "GCS"),
    ),
    Machine(
        "riscv64", EM_RISCV, Relocations(3, 2, 58), page_nbytes=4096,
        e_flags=1 | 4,  # EF_RISCV_RVC, EF_RISCV_FLOAT_ABI_DOUBLE
        features="+m,+a,+f,+d,+c", abi="lp64d",
        and_property=0xC0000000, marks=("ZICFILP", "ZICFISS"),
    ),
    Machine("ppc64le", 21, Relocations(22, 38, 248)),
    Machine("loongarch64", 258, Relocations(3, 2, 12), char="i8"),
)  # fmt: skip
BY_NUMBER = {machine.e_machine: machine for machine in _ALL}
BY_NAME = {machine.name: machine for machine in _ALL}
# The machines that a library can be exported for.
MACHINES = {machine.name: machine for machine in _ALL if machine.page_nbytes}


def page_nbytes_of(e_machine: int) -> int:
    """Return the page size of a machine by its number; the largest one if it is unknown."""
    machine = BY_NUMBER.get(e_machine)
    pages = (known.page_nbytes for known in MACHINES.values())
    return (machine.page_nbytes if machine else 0) or max(pages)
