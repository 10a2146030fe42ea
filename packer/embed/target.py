"""Targets that have ELF-64 libraries, by their triples."""

from __future__ import annotations

import os

from runtime.error import ExportError

# First word of a target triple -> e_machine, and the e_flags of its usual ABI.
MACHINES = {
    "x86_64": (62, 0),
    "aarch64": (183, 0),
    "arm64": (183, 0),
    "riscv64": (243, 5),  # lp64d: EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE
}


def native_triple() -> str:
    """The target triple of this machine, where no compiler says it."""
    return f"{os.uname().machine}-linux-gnu"


def is_elf(triple: str | None) -> bool:
    """Whether libraries for a target (by default this machine) are ELF files that we can write."""
    words = (triple or native_triple()).split("-")
    is_32_bit = words[-1].endswith(("x32", "ilp32"))
    return words[0] in MACHINES and "linux" in words and not is_32_bit


def machine_of(triple: str | None) -> tuple[int, int]:
    """Give e_machine and e_flags of a target.

    Raises
    ------
    ExportError
        It has no ELF libraries that we can write.
    """
    if not is_elf(triple):
        text = (
            f"embed 'segment': target {triple!r}, expected Linux on {', '.join(MACHINES)}; "
            f"use embed='llvm' or embed='c'"
        )
        raise ExportError(text)
    return MACHINES[(triple or native_triple()).split("-")[0]]
