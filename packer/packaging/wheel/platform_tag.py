"""The platform tag of a wheel, from the libraries and symbol versions that its files need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.error import ExportError

from ...elf.dynamic import read_dynamic
from ...elf.linkage import libc_of
from ...elf.notes import read_needed_level
from ...files.text import path_error, shown_path
from . import manylinux

if TYPE_CHECKING:
    from ...elf.dynamic import Dynamic
    from .manylinux import Version

# Musl has no symbol versions, and 1.2 is of 2020.
_MUSL = "musllinux_1_2"
_FOREIGN = "which not every system has; `auditwheel repair` copies it into the wheel"
_SHOWN = 3  # symbols in a message
_TAG = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")


class Platform(NamedTuple):
    """Where the libraries of a wheel can be loaded."""

    # The platform tags of the wheel: ``("manylinux_2_17_x86_64", "manylinux2014_x86_64")``.
    tags: tuple[str, ...]
    machine: str  # the machine of all libraries
    # What asks for the tag: the need that no older one meets; for ``linux_`` each need that no
    # manylinux tag meets.
    because: tuple[str, ...] = ()

    @property
    def is_portable(self) -> bool:
        """True if the tags say which systems can load it: PyPI takes no ``linux_`` wheel."""
        return not self.tags[0].startswith("linux_")


@dataclass(frozen=True, slots=True)
class _Need:
    """A library, or a symbol version of it, that a file needs."""

    path: Path
    dynamic: Dynamic
    library: str
    version: str
    glibc: Version | None  # the first manylinux tag that guarantees it; None if none does

    def text(self) -> str:
        """Return the need as a sentence, with the first symbols of a version."""
        where = shown_path(self.path)
        if not self.version:
            why = "" if self.glibc else f", {_FOREIGN}"
            return f"{where} needs {self.library}{why}"
        symbols = (s for s in self.dynamic.symbols if not s.defined and s.version == self.version)
        names = sorted(symbol.name for symbol in symbols)
        shown = ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])
        why = "" if self.glibc else ", which no manylinux tag guarantees"
        of = f"{self.version} of {self.library}"
        return f"{where} needs {of}{f' ({shown})' if shown else ''}{why}"


def platform_of(paths: Sequence[Path]) -> Platform:
    """Measure where the shared objects of a wheel can be loaded. They are read, never loaded.

    They may need each other. Raises LibraryLoadError if one is not a 64-bit ELF shared object;
    ExportError if they are for different machines or C libraries.
    """
    opened = {path: read_dynamic(path) for path in paths}
    machine = _machine(opened)
    own = {path.name for path in paths}
    own |= {soname for d in opened.values() if (soname := d.linkage().soname) is not None}
    needs = {path: [n for n in d.linkage().needed if n not in own] for path, d in opened.items()}
    on_musl = [p for p, names in needs.items() if libc_of(names) == "musl"]
    on_glibc = [p for p, names in needs.items() if libc_of(names) == "gnu"]
    if on_musl and on_glibc:
        text = f"needs musl, and {shown_path(on_glibc[0])} needs glibc; make a wheel of each"
        raise path_error(on_musl[0], text)
    if on_musl:
        return _musl_platform(needs, machine)
    found = [need for path, d in opened.items() for need in _glibc_needs(path, d, needs[path])]
    platform = _glibc_platform(found, _levels(opened), machine)
    if platform.is_portable and not any(needs.values()):  # weights alone need no C library
        return platform._replace(tags=(*platform.tags, f"{_MUSL}_{machine}"))
    return platform


def required(platform: Platform, tag: str) -> Platform:
    """Return the platform under a tag that the user asked for, as ``"manylinux_2_28_x86_64"``.

    ``"linux_x86_64"`` is always possible. Raises ExportError if the libraries need more than the
    tag guarantees.
    """
    if tag in platform.tags or tag == f"linux_{platform.machine}":
        return platform._replace(tags=(tag,))
    asked, found = _TAG.fullmatch(tag), _TAG.fullmatch(platform.tags[0])
    if asked and found and asked[3] == found[3] and _glibc(asked) > _glibc(found):
        return platform._replace(tags=(tag,))
    why = f"; {platform.because[0]}" if platform.because else ""
    text = f"expected libraries that can have it, found ones for {'.'.join(platform.tags)}{why}"
    raise ExportError(f"platform {tag!r}: {text}")


def _glibc(match: re.Match[str]) -> Version:
    return int(match[1]), int(match[2])


def _machine(opened: dict[Path, Dynamic]) -> str:
    (first, dynamic), *others = opened.items()
    machine = dynamic.image.machine
    for path, other in others:
        if other.image.machine != machine:
            text = f"compiled for {other.image.machine}, expected {machine} as {shown_path(first)}"
            raise path_error(path, f"{text}; make a wheel for each machine")
    return machine


def _musl_platform(needs: dict[Path, list[str]], machine: str) -> Platform:
    """Musl's systems have no other library in common; auditwheel allows zlib."""
    foreign = [
        f"{shown_path(path)} needs {name}, {_FOREIGN}"
        for path, names in needs.items()
        for name in names
        if libc_of([name]) is None and name != "libz.so.1"
    ]
    if foreign:
        return Platform((f"linux_{machine}",), machine, tuple(foreign))
    return Platform((f"{_MUSL}_{machine}",), machine)


def _glibc_needs(path: Path, dynamic: Dynamic, needed: Iterable[str]) -> Iterator[_Need]:
    for name in needed:
        yield _Need(path, dynamic, name, "", manylinux.tag_of_library(name))
    for need in dynamic.linkage().version_needs:
        for version in need.versions:
            yield _Need(path, dynamic, need.library, version, manylinux.tag_of_version(version))


def _levels(opened: dict[Path, Dynamic]) -> list[str]:
    """Return the files that are marked for more than the baseline of x86-64 (ld -z x86-64-v3)."""
    marked = {path: read_needed_level(dynamic.image) for path, dynamic in opened.items()}
    return [
        f"{shown_path(path)} needs a processor of x86-64-v{level}, which no tag can say; export it "
        f"with CPU levels"
        for path, level in marked.items()
        if level > 1
    ]


def _glibc_platform(needs: list[_Need], levels: list[str], machine: str) -> Platform:
    first = manylinux.first_tag(machine)
    unmet = [*levels, *(need.text() for need in needs if need.glibc is None)]
    if first is None:
        unmet.append(f"no manylinux tag is known for {machine}")
    if unmet or first is None:
        return Platform((f"linux_{machine}",), machine, tuple(unmet))
    newest = max([first, *(need.glibc for need in needs if need.glibc is not None)])
    because = tuple(need.text() for need in needs if need.glibc == newest and newest > first)
    return Platform(tuple(manylinux.tags(newest, machine)), machine, because)
