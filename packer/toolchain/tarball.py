"""A tar of everything that a link needs: written the same every time, and read with care.

    packer.json     {"schema": 1, "members": ["lib0.o", ...], "options": ["-lfoo", ...]}: what must
                    be there, and the options of the link
    *.o, *.a        objects, and archives to pick from; regular files, in link order

Nothing in a tar is run or trusted: a reader takes flat names and regular files only, looks at each
object, and passes on no option but ``-lNAME`` and ``-pthread``.
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

from ..files.text import shown_path
from .reproducible import source_date_epoch

RECORD = "packer.json"
SCHEMA = 1
_MAX_MEMBERS = 4096
_MAX_RECORD_NBYTES = 1 << 20
_SAFE_OPTION = re.compile(r"-l[A-Za-z0-9_][A-Za-z0-9_+.-]*|-pthread")
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"\x28\xb5": "zstd"}


class Member(NamedTuple):
    """One object or archive: its name, and where in the tar it lies."""

    name: str
    offset: int
    nbytes: int


class Tarball(NamedTuple):
    """What is in a tar.

    Attributes
    ----------
    members : list of Member
        In link order.
    options : tuple of str
        What the linker is told.
    """

    members: list[Member]
    options: tuple[str, ...]


def write_tarball(path: Path, files: Sequence[Path], options: Sequence[str]) -> None:
    """Write a tar.

    Parameters
    ----------
    path : Path
        Made anew.
    files : sequence of Path
        Objects and archives; each goes in under its own name.
    options : sequence of str
        Recorded for the link.

    Raises
    ------
    ExportError
        Two files have one name, or a file is neither.

    Notes
    -----
    No user and no mode goes in, and no time but what SOURCE_DATE_EPOCH says.
    """
    _check_names(path, [file.name for file in files])
    names = [file.name for file in files]
    fields = {"schema": SCHEMA, "members": names, "options": list(options)}
    record = json.dumps(fields).encode() + b"\n"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(_entry(RECORD, len(record)), io.BytesIO(record))
        for source in files:
            with source.open("rb") as file:
                tar.addfile(_entry(source.name, os.fstat(file.fileno()).st_size), file)


def _check_names(path: Path, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if not name.endswith((".o", ".a")):
            text = f"{name!r} for a tar, expected an object or archive (.o, .a)"
            raise ExportError(f"{text}; name a shared library to packer link", path=str(path))
        if name in names[:index]:
            raise ExportError(f"two files {name!r} for one tar; rename one", path=str(path))


def _entry(name: str, nbytes: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = nbytes
    entry.mtime = source_date_epoch()
    return entry


def read_tarball(path: Path) -> Tarball:
    """Find what is in a tar; nothing is unpacked.

    Raises
    ------
    ExportError
        It is no tar, or holds what none of ours does: a path, a link, a device, another kind
        of file, the same name twice.
    """
    members: dict[str, Member] = {}
    expected: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for name, entry in _entries(path):
        if name in members:
            raise _error(path, f"holds {name!r} twice, expected once")
        if name == RECORD:
            expected, options = _read_record(path, entry)
        elif name.endswith((".o", ".a")):
            members[name] = Member(name, entry.offset_data, entry.size)
        else:
            raise _error(path, f"holds {name!r}, expected objects and archives (.o, .a)")
    if missing := [name for name in expected if name not in members]:
        raise _error(path, f"lacks {missing[0]!r}; is it cut short?")
    if not members:
        raise _error(path, "holds no object, expected one at least")
    return Tarball(list(members.values()), options)


def _entries(path: Path) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """The files of a tar, by flat names; each lies within it."""
    _refuse_compressed(path)
    total = path.stat().st_size
    try:
        with tarfile.open(path, "r:", errorlevel=1) as tar:
            for index, entry in enumerate(tar):
                if index >= _MAX_MEMBERS:
                    raise _error(path, f"more than {_MAX_MEMBERS} members")
                if entry.isdir() and entry.name in (".", "./"):
                    continue  # `tar -c .` begins with it
                if not entry.isreg() or entry.issparse():
                    what = f"member {entry.name!r} of type {entry.type!r}"
                    raise _error(path, f"{what}, expected regular files only")
                if entry.size > total - entry.offset_data:
                    what = f"member {entry.name!r} of {entry.size} bytes"
                    raise _error(path, f"{what}, which is more than the file has; is it cut short?")
                yield _flat(path, entry.name), entry
    except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
        if isinstance(error, ExportError):  # it is a ValueError
            raise
        raise _error(path, f"{error}, expected a tar") from error


def _flat(path: Path, name: str) -> str:
    flat = name.removeprefix("./")
    if "/" in flat or flat in ("", ".", "..") or not flat.isprintable() or flat[0] in "-@":
        raise _error(path, f"member {name!r}, expected plain file names without folders")
    return flat


def _refuse_compressed(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(2)
    if head in _COMPRESSED:
        raise _error(path, f"is compressed ({_COMPRESSED[head]}); unpack it to a plain tar first")


def _read_record(path: Path, entry: tarfile.TarInfo) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if entry.size > _MAX_RECORD_NBYTES:
        raise _error(path, f"{RECORD} of {entry.size} bytes, expected {_MAX_RECORD_NBYTES} at most")
    with path.open("rb") as file:
        file.seek(entry.offset_data)
        text = file.read(entry.size)
    try:
        fields = json.loads(text)
        if fields["schema"] != SCHEMA:
            what = f"schema {fields['schema']!r}, expected {SCHEMA}"
            raise _error(path, f"{RECORD}: {what}; a newer packer reads it")
        return _strings(fields["members"]), _strings(fields["options"])
    except ExportError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"{RECORD}: {type(error).__name__} {error}"
        raise _error(path, f"{what}, expected a record of schema {SCHEMA}") from error


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise TypeError(f"{value!r} is no array of strings")


def unsafe_options(options: Iterable[str]) -> list[str]:
    """The options that are not passed on: a compiler can be told to run or read anything."""
    return [option for option in options if not _SAFE_OPTION.fullmatch(option)]


def _error(path: Path, text: str) -> ExportError:
    return ExportError(f"{shown_path(path)}: {text}", path=str(path))
