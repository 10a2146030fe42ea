"""Inputs of a deferred link: an object, an archive or a tar, and the objects in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from runtime.error import ExportError

from ..elf import archive
from ..elf.object_file import ObjectFile
from ..files.text import path_error, shown_path
from ..machine import BY_NUMBER
from ..target import find_target
from . import tarball

_TAR_MAGIC, _TAR_MAGIC_OFFSET = b"ustar", 257


class LinkInput:
    """The objects of one file, which its first bytes identify. Nothing is unpacked.

    `suffix` is ``"o"``, ``"a"`` or ``"tar"``, `options` the options of a tar for the link.
    `objects` are also the objects of archives in a tar. Raises ExportError if the file is not an
    object, archive or tar, or contains anything else than objects.
    """

    def __init__(self, path: Path, expected: str | None = None) -> None:
        self.path = path
        self.options: tuple[str, ...] = ()
        self._members: Sequence[archive.Member] = ()
        head = _head(path)
        if head.startswith(b"\x7fELF"):
            self.suffix = "o"
            self.objects = [ObjectFile(path)]
        elif head.startswith((archive.MAGIC, archive.THIN_MAGIC)):
            self.suffix = "a"
            self.objects = _of_archive(path, shown_path(path), 0, None)
        elif head[_TAR_MAGIC_OFFSET:].startswith(_TAR_MAGIC):
            self.suffix = "tar"
            self._members, self.options = tarball.read_tarball(path)
            self.objects = [o for member in self._members for o in _of_member(path, member)]
        else:
            text = "expected an object, archive or tar (.o, .a, .tar) to link"
            raise path_error(path, f"begins with {head[:8]!r}, {text}")
        if expected not in (None, self.suffix):
            raise path_error(path, f"format {self.suffix!r}, expected {expected!r}")

    def symbol(self, name: str) -> tuple[int | None, int] | None:
        """Return the (file offset, nbytes) of a symbol that an object defines, or None."""
        found = (o.definitions.get(name) for o in self.objects)
        return next(((d.offset, d.nbytes) for d in found if d is not None), None)

    def check_machine(self, triple: str | None) -> None:
        """Refuse objects for another machine than a target triple's; None is this machine.

        Raises ExportError if there is one; the message names both machines.
        """
        expected = find_target(triple).machine
        for found in self.objects:
            if found.machine != expected.e_machine:
                what = f"an object for {_name_of(found.machine)}, expected {expected.name}"
                text = f"{found.name}: {what}, the linker's target"
                raise ExportError(text, path=str(self.path))

    def split(self, folder: Path) -> list[Path]:
        """Return the inputs for the linker: the file, or a tar's members in a new folder."""
        if self.suffix != "tar":
            return [self.path.absolute()]
        folder.mkdir(mode=0o700)
        made = []
        with self.path.open("rb") as source:
            for member in self._members:
                made.append(folder / member.name)
                source.seek(member.offset)
                with made[-1].open("xb") as file:
                    _copy(source, file, member.nbytes)
        return made


def _head(path: Path) -> bytes:
    try:
        if not path.is_file():
            what = "not a regular file" if path.exists() else "there is no such file"
            raise path_error(path, what)
        with path.open("rb") as file:
            return file.read(_TAR_MAGIC_OFFSET + len(_TAR_MAGIC))
    except OSError as error:
        raise path_error(path, f"cannot be read: {error.strerror}") from error


def _of_archive(path: Path, name: str, offset: int, nbytes: int | None) -> list[ObjectFile]:
    return [
        ObjectFile(path, f"{name}({member.name})", member.offset, member.nbytes)
        for member in archive.read_archive(path, offset, nbytes)
    ]


def _of_member(path: Path, member: archive.Member) -> list[ObjectFile]:
    name = f"{shown_path(path)}({member.name})"
    if member.name.endswith(".a"):
        return _of_archive(path, name, member.offset, member.nbytes)
    return [ObjectFile(path, name, member.offset, member.nbytes)]


def _copy(source: IO[bytes], output: IO[bytes], nbytes: int) -> None:
    while nbytes and (data := source.read(min(nbytes, 1 << 20))):
        output.write(data)
        nbytes -= len(data)


def _name_of(machine: int) -> str:
    name = BY_NUMBER[machine].name if machine in BY_NUMBER else "another machine"
    return f"{name} (e_machine {machine})"
