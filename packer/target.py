"""Targets: the machines and systems that a library can be exported for, by their triples.

    x86_64-linux-gnu    aarch64-unknown-linux-musl    x86_64-linux-gnu.2.17 (zig's glibc version)

Other targets are refused with the reason. The machine must be little-endian, since a blob is read
in place; it must have 64-bit words, as the function ABI does; and its libraries must be ELF.
"""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

from runtime.error import ExportError

from .machine import MACHINES, Machine

_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}

_BIG_ENDIAN = re.compile(
    r"aarch64_be|arm(eb|v\w+eb)|thumbeb|hppa\w*|m68k|(mips(64)?(r6)?|mipsisa\d+(r\d)?)|or1k"
    r"|(powerpc|ppc)(64)?|s390x?|sparc\w*"
)
_NARROW = re.compile(r"i[3-7]86|x86|arm(v\w+)?|thumb\w*|mips(isa32\w*)?el|powerpcle|riscv32|wasm32")
# The last word of a triple: other ABIs of known machines.
_NARROW_ABI = re.compile(r"\w*(x32|ilp32|abin32)")
_OTHER_FLOATS = re.compile(r"\w*(sf|f32)")
_PE = re.compile(r"windows\w*|win32|mingw\w*|cygwin\w*|uefi")
_MACH_O = re.compile(r"(darwin|macos|macosx|ios|tvos|watchos)[\d.]*")
_VERSION = re.compile(r"\d+(\.\d+)+")


class Target(NamedTuple):
    """The machine and system that a library is exported for."""

    triple: str  # as the caller wrote it
    machine: Machine
    environment: str  # the C library: ``"gnu"``, ``"musl"``, ...
    version: str  # the oldest supported glibc, ``"2.17"``; empty for the toolchain's default

    def is_like(self, other: Target) -> bool:
        """Return True if code for one target can be linked with code for the other."""
        return (self.machine, self.environment) == (other.machine, other.environment)

    @property
    def gnu(self) -> str:
        """The triple in the names of cross compilers: ``aarch64-linux-gnu``."""
        return f"{self.machine.name}-linux-{self.environment}"

    @property
    def llvm(self) -> str:
        """The triple as LLVM writes it: ``aarch64-unknown-linux-gnu``."""
        return f"{self.machine.name}-unknown-linux-{self.environment}"

    @property
    def zig(self) -> str:
        """The triple as zig accepts it: ``x86_64-linux-gnu.2.17``."""
        return f"{self.gnu}.{self.version}" if self.version else self.gnu


def native_triple() -> str:
    """Return the target triple of this machine without asking a compiler."""
    return f"{os.uname().machine}-linux-gnu"


@functools.cache
def find_target(triple: str | None) -> Target:
    """Parse a target triple; None means this machine.

    Raises ExportError if the target is unsupported; the message gives the reason.
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


def machine_word(triple: str) -> Machine | None:
    """Return the machine that a triple of any system names, or None if it is unknown."""
    name = triple.split("-")[0]
    return MACHINES.get(_ALIASES.get(name, name))


def _refusal(name: str, words: list[str]) -> str:
    """Return why a machine or system is unsupported; empty if it is supported."""
    if _BIG_ENDIAN.fullmatch(name):
        return f"{name} is big-endian, expected little-endian: a blob is read in place"
    if _NARROW.fullmatch(name):
        return f"{name} is a 32-bit machine, expected 64 bits: the function ABI has 64-bit words"
    if any(map(_PE.fullmatch, words)):
        return "Windows uses PE files, expected a system with ELF libraries"
    if any(map(_MACH_O.fullmatch, words)):
        return "macOS uses Mach-O files, expected a system with ELF libraries"
    if _ALIASES.get(name, name) not in MACHINES:
        return f"unknown machine {name!r}"
    if not any(word.startswith("linux") for word in words):
        return "expected a Linux system"
    return ""


def _odd_abi(environment: str) -> str:
    if _NARROW_ABI.fullmatch(environment):
        return f"{environment} has 32-bit pointers, expected 64 bits, as in the function ABI"
    if _OTHER_FLOATS.fullmatch(environment):
        return f"{environment} is another floating-point ABI, expected the double-float ABI"
    return ""


def _odd_version(environment: str, version: str) -> str:
    if version and (environment != "gnu" or not _VERSION.fullmatch(version)):
        return f"version {version!r}, expected a glibc version, as in -linux-gnu.2.17"
    return ""
