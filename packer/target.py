"""Targets: the machines and systems that a library can be made for, by their triples.

    x86_64-linux-gnu    aarch64-unknown-linux-musl    x86_64-linux-gnu.2.17 (zig's glibc version)

What is not here is refused with the reason: a blob is read where it lies, so the machine must be
little-endian; the function ABI has 64-bit words; the reader and the writer know ELF alone.
"""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

from runtime.error import ExportError


class Machine(NamedTuple):
    """A processor architecture with the ABI that its Linux distributions have.

    Attributes
    ----------
    name : str
        The first word of a triple.
    e_machine, e_flags : int
        As in an ELF header.
    page_nbytes : int
        The largest page that Linux has there: what is mapped apart lies so far apart.
    features, abi : str
        What LLVM must be told to generate code for it.
    hardening : str
        The compiler option for code that bears landing pads and shadow stacks.
    feature_1_and : tuple of int
        The GNU property that marks such code: its pr_type and its bits (psABI of each machine).
    """

    name: str
    e_machine: int
    e_flags: int
    page_nbytes: int
    features: str = ""
    abi: str = ""
    hardening: str = ""
    feature_1_and: tuple[int, int] = (0, 0)


MACHINES = {
    machine.name: machine
    for machine in (
        Machine(
            "x86_64", 62, 0, 4096,
            hardening="-fcf-protection=full",
            feature_1_and=(0xC0000002, 3),  # IBT, SHSTK
        ),
        Machine(
            "aarch64", 183, 0, 65536,
            hardening="-mbranch-protection=standard",
            feature_1_and=(0xC0000000, 7),  # BTI, PAC, GCS
        ),
        # EF_RISCV_RVC 1, EF_RISCV_FLOAT_ABI_DOUBLE 4
        Machine("riscv64", 243, 1 | 4, 4096, features="+m,+a,+f,+d,+c", abi="lp64d"),
    )
}  # fmt: skip
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}

_BIG_ENDIAN = re.compile(
    r"aarch64_be|arm(eb|v\w+eb)|thumbeb|hppa\w*|m68k|(mips(64)?(r6)?|mipsisa\d+(r\d)?)|or1k"
    r"|(powerpc|ppc)(64)?|s390x?|sparc\w*"
)
_NARROW = re.compile(r"i[3-7]86|x86|arm(v\w+)?|thumb\w*|mips(isa32\w*)?el|powerpcle|riscv32|wasm32")
# The last word of a triple: further ABIs of a machine that is known.
_NARROW_ABI = re.compile(r"\w*(x32|ilp32|abin32)")
_OTHER_FLOATS = re.compile(r"\w*(sf|f32)")
_PE = re.compile(r"windows\w*|win32|mingw\w*|cygwin\w*|uefi")
_MACH_O = re.compile(r"(darwin|macos|macosx|ios|tvos|watchos)[\d.]*")
_VERSION = re.compile(r"\d+(\.\d+)+")


class Target(NamedTuple):
    """What a library is made for.

    Attributes
    ----------
    triple : str
        As it was given.
    machine : Machine
        The processor.
    environment : str
        The C library: ``"gnu"``, ``"musl"``, ...
    version : str
        The oldest glibc that must do, ``"2.17"``; empty for the toolchain's own.
    """

    triple: str
    machine: Machine
    environment: str
    version: str

    def is_like(self, other: Target) -> bool:
        """Whether code for one can be linked with code for the other."""
        return (self.machine, self.environment) == (other.machine, other.environment)

    @property
    def gnu(self) -> str:
        """As cross compilers are named: ``aarch64-linux-gnu``."""
        return f"{self.machine.name}-linux-{self.environment}"

    @property
    def llvm(self) -> str:
        """As LLVM writes it: ``aarch64-unknown-linux-gnu``."""
        return f"{self.machine.name}-unknown-linux-{self.environment}"

    @property
    def zig(self) -> str:
        """As zig takes it: ``x86_64-linux-gnu.2.17``."""
        return f"{self.gnu}.{self.version}" if self.version else self.gnu


def native_triple() -> str:
    """The target triple of this machine, where no compiler says it."""
    return f"{os.uname().machine}-linux-gnu"


@functools.cache
def find_target(triple: str | None) -> Target:
    """Read a target triple; None is this machine.

    Raises
    ------
    ExportError
        No library can be made for it yet; says why.
    """
    text = native_triple() if triple is None else triple
    name, *words = text.split("-")
    last, _, version = words[-1].partition(".") if words else ("", "", "")
    if reason := _refusal(name, words) or _odd_abi(last) or _odd_version(last, version):
        known = ", ".join(MACHINES)
        text = f"target {text!r}: {reason}; known: {known}, each with -linux-gnu or -linux-musl"
        raise ExportError(text)
    environment = "gnu" if last.startswith("linux") else last
    return Target(text, MACHINES[_ALIASES.get(name, name)], environment, version)


def page_nbytes_of(e_machine: int) -> int:
    """The page size of a machine, by its number; the largest of all where it is not known."""
    pages = {machine.e_machine: machine.page_nbytes for machine in MACHINES.values()}
    return pages.get(e_machine, max(pages.values()))


def machine_word(triple: str) -> Machine | None:
    """The machine that a triple of any system names, if it is known."""
    name = triple.split("-")[0]
    return MACHINES.get(_ALIASES.get(name, name))


def _refusal(name: str, words: list[str]) -> str:
    """Why no library can be made for a machine or system; empty where one can."""
    if _BIG_ENDIAN.fullmatch(name):
        return f"{name} is big-endian, expected little-endian: a blob is read where it lies"
    if _NARROW.fullmatch(name):
        return f"{name} is a 32-bit machine, expected 64 bits: the function ABI has 64-bit words"
    if any(map(_PE.fullmatch, words)):
        return "Windows has PE files, expected a system with ELF libraries"
    if any(map(_MACH_O.fullmatch, words)):
        return "macOS has Mach-O files, expected a system with ELF libraries"
    if _ALIASES.get(name, name) not in MACHINES:
        return f"machine {name!r} is not known"
    if not any(word.startswith("linux") for word in words):
        return "expected a Linux system"
    return ""


def _odd_abi(environment: str) -> str:
    if _NARROW_ABI.fullmatch(environment):
        return f"{environment} has 32-bit pointers, expected 64 bits: so has the function ABI"
    if _OTHER_FLOATS.fullmatch(environment):
        return f"{environment} passes floats otherwise, expected the double-float ABI"
    return ""


def _odd_version(environment: str, version: str) -> str:
    if version and (environment != "gnu" or not _VERSION.fullmatch(version)):
        return f"version {version!r}, expected one of glibc, as in -linux-gnu.2.17"
    return ""
