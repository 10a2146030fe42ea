"""The linkage and the hardening of a library, as its dynamic section and segments record them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Musl's loader takes libc.so for itself.
_MUSL = re.compile(r"libc\.so|(libc\.musl|ld-musl)-[a-z0-9_]+\.so\.1")


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """The symbol versions that a library needs from another one."""

    library: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Linkage:
    """The requests of the dynamic section to the dynamic loader."""

    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    audit: tuple[str, ...]
    filter: tuple[str, ...]
    version_needs: tuple[VersionNeed, ...] = ()
    # The newest glibc version that a symbol is bound to; an older glibc cannot load the library.
    glibc: str | None = None

    @property
    def libc(self) -> str | None:
        """The C library that it needs, as a triple names it: "gnu" or "musl"; None without one."""
        return libc_of(self.needed)


def libc_of(needed: Iterable[str]) -> str | None:
    """Return the C library among needed ones: ``"gnu"``, ``"musl"``, or None."""
    for name in needed:
        if name == "libc.so.6":
            return "gnu"
        if _MUSL.fullmatch(name):
            return "musl"
    return None


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


@dataclass(frozen=True, slots=True)
class Hardening:
    """How the linker hardened the file."""

    relro: str  # ``"full"``, ``"partial"`` or ``"none"``
    nx: bool  # True if the stack is not executable
    rwx: bool  # True if a segment is both writable and executable
    textrel: bool  # True if relocations write to read-only segments
    # The marks of all code: ``"IBT"``, ``"SHSTK"`` (x86-64's CET), ``"BTI"``, ``"PAC"``, ``"GCS"``
    # (AArch64), ``"ZICFILP"``, ``"ZICFISS"`` (RISC-V).
    branch_protection: tuple[str, ...] = ()
