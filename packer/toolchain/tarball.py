"""A tar of everything that a link needs; its bytes are reproducible, and a reader checks them.

    packer.json     {"schema": 1, "members": ["lib0.o", ...], "options": ["-lfoo", ...]}: the
                    required members, and the options of the link
    *.o, *.a        objects, and archives to pick from; regular files, in link order

A tar is not trusted: a reader accepts flat names and regular files only, checks each object, and
passes on no options but ``-lNAME`` and ``-pthread``.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.error import ExportError

from ..elf.archive import Member
from ..files.text import path_error
from .reproducible import source_date_epoch

RECORD = "packer.json"
SCHEMA = 1
_MAX_MEMBERS = 4096
_MAX_RECORD_NBYTES = 1 << 20
_SAFE_OPTION = re.compile(r"-l[A-Za-z0-9_][A-Za-z0-9_+.-]*|-pthread")
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"\x28\xb5": "zstd"}


class Tarball(NamedTuple):
    """The contents of a tar: members in link order, and the options for the linker."""

    members: list[Member]
    options: tuple[str, ...]


def write_tarball(path: Path, files: Sequence[Path], options: Sequence[str]) -> None:
    """Write a tar of objects and archives, each under its file name, and the link's options.

    Users and modes are not stored, and each time is SOURCE_DATE_EPOCH. Raises ExportError if two
    files have the same name, or if a file is neither object nor archive.
    """
    _check_names(path, [file.name for file in files])
    names = [file.name for file in files]
    fields = {"schema": SCHEMA, "members": names, "options": list(options)}
    record = json.dumps(fields).encode() + b"\n"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(_header(RECORD, len(record)), io.BytesIO(record))
        for source in files:
            with source.open("rb") as file:
                tar.addfile(_header(source.name, os.fstat(file.fileno()).st_size), file)


def _check_names(path: Path, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if not name.endswith((".o", ".a")):
            text = f"{name!r} for a tar, expected an object or archive (.o, .a)"
            raise ExportError(f"{text}; name a shared library to packer link", path=str(path))
        if name in names[:index]:
            raise ExportError(f"two files {name!r} for one tar; rename one", path=str(path))


def _header(name: str, nbytes: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size = nbytes
    header.mtime = source_date_epoch()
    return header


def read_tarball(path: Path) -> Tarball:
    """Return the contents of a tar without unpacking it.

    Raises ExportError if it is not a tar, or contains what no export writes: a path, a link, a
    device, another type of file, the same name twice.
    """
    members: dict[str, Member] = {}
    expected: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for name, header in _files(path):
        if name in members:
            raise path_error(path, f"contains {name!r} twice, expected once")
        if name == RECORD:
            expected, options = _read_record(path, header)
        elif name.endswith((".o", ".a")):
            members[name] = Member(name, header.offset_data, header.size)
        else:
            raise path_error(path, f"contains {name!r}, expected objects and archives (.o, .a)")
    if missing := [name for name in expected if name not in members]:
        raise path_error(path, f"lacks {missing[0]!r}; is it truncated?")
    if not members:
        raise path_error(path, "contains no object, expected at least one")
    return Tarball(list(members.values()), options)


def _files(path: Path) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Yield the files of a tar by their flat names; each is inside it."""
    _refuse_compressed(path)
    total = path.stat().st_size
    try:
        with tarfile.open(path, "r:", errorlevel=1) as tar:
            for index, header in enumerate(tar):
                if index >= _MAX_MEMBERS:
                    raise path_error(path, f"more than {_MAX_MEMBERS} members")
                if header.isdir() and header.name in (".", "./"):
                    continue  # the first member of `tar -c .`
                if not header.isreg() or header.issparse():
                    what = f"member {header.name!r} of type {header.type!r}"
                    raise path_error(path, f"{what}, expected regular files only")
                if header.size > total - header.offset_data:
                    what = f"member {header.name!r} of {header.size} bytes"
                    raise path_error(
                        path, f"{what}, which is more than the file has; is it truncated?"
                    )
                yield _flat(path, header.name), header
    except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
        if isinstance(error, ExportError):  # it is a ValueError
            raise
        raise path_error(path, f"{error}, expected a tar") from error


def _flat(path: Path, name: str) -> str:
    flat = name.removeprefix("./")
    if "/" in flat or flat in ("", ".", "..") or not flat.isprintable() or flat[0] in "-@":
        raise path_error(path, f"member {name!r}, expected plain file names without folders")
    return flat


def _refuse_compressed(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(2)
    if head in _COMPRESSED:
        raise path_error(path, f"is compressed ({_COMPRESSED[head]}); decompress it first")


def _read_record(path: Path, header: tarfile.TarInfo) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if header.size > _MAX_RECORD_NBYTES:
        raise path_error(
            path, f"{RECORD} of {header.size} bytes, expected {_MAX_RECORD_NBYTES} at most"
        )
    with path.open("rb") as file:
        file.seek(header.offset_data)
        text = file.read(header.size)
    try:
        fields = json.loads(text)
        if fields["schema"] != SCHEMA:
            what = f"schema {fields['schema']!r}, expected {SCHEMA}"
            raise path_error(path, f"{RECORD}: {what}; use a newer packer")
        return _strings(fields["members"]), _strings(fields["options"])
    except ExportError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"{RECORD}: {type(error).__name__} {error}"
        raise path_error(path, f"{what}, expected a record of schema {SCHEMA}") from error


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise TypeError(f"{value!r} is not an array of strings")


def unsafe_options(options: Iterable[str]) -> list[str]:
    """Return the options that are not passed on: some make a compiler run or read any file."""
    return [option for option in options if not _SAFE_OPTION.fullmatch(option)]
