r"""Archives (.a) in GNU's and BSD's forms of ar(5): one object is written, any archive is read.

"!<arch>\n"
member     name 16, mtime 12, uid 6, gid 6, mode 8, nbytes 10 (text), "`\n", bytes, pad to 2
"/"        the index: u32 count, u32 offsets of members, names; big-endian
"/SYM64/"  the same with u64, for members beyond 4 GiB
"//"       long names; the name of member "/12" is at offset 12, up to "/\n"
"#1/12"    BSD: the name is the first 12 of the bytes; its index is "__.SYMDEF"

A thin archive ("!<thin>\n") does not contain its members: their names are relative paths.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from ..files.text import path_error

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
_HEADER_NBYTES = 60
_MAX_NBYTES = 10**10 - 1  # ten digits
_INDEXES = ("/", "/SYM64/", "//")
_BSD_INDEX = "__.SYMDEF"


class Member(NamedTuple):
    """One member: its name, and its place in the file."""

    name: str
    offset: int
    nbytes: int


def write_archive(path: Path, member: Path, symbols: Iterable[str]) -> None:
    """Write an archive of one object, with an index of its symbols, without times and users.

    The object's name is at most 15 bytes long. Raises ExportError if the object is too large.
    """
    names = [name.encode("utf-8", "surrogateescape") for name in symbols]
    text = b"".join(name + b"\0" for name in names)
    index_nbytes = 4 + 4 * len(names) + len(text)
    offset = len(MAGIC) + _HEADER_NBYTES + index_nbytes + index_nbytes % 2
    index = len(names).to_bytes(4, "big") + offset.to_bytes(4, "big") * len(names) + text
    with path.open("wb") as file, member.open("rb") as source:
        nbytes = source.seek(0, 2)
        if nbytes > _MAX_NBYTES:
            what = f"an object of {nbytes} bytes"
            raise path_error(path, f"{what}, expected at most {_MAX_NBYTES} in an archive")
        source.seek(0)
        file.write(MAGIC + _header("/", len(index)) + index + b"\n" * (len(index) % 2))
        file.write(_header(f"{member.name}/", nbytes))
        shutil.copyfileobj(source, file, 1 << 20)
        file.write(b"\n" * (nbytes % 2))


def _header(name: str, nbytes: int) -> bytes:
    return f"{name:16}{0:<12}{0:<6}{0:<6}{644:<8}{nbytes:<10}`\n".encode()


def read_archive(path: Path, offset: int = 0, nbytes: int | None = None) -> Iterator[Member]:
    """Iterate over the members of an archive, except indexes and the table of names.

    The archive is the whole file, or a part of it. Raises ExportError if it is thin, damaged or no
    archive.
    """
    with path.open("rb") as file:
        end = file.seek(0, 2) if nbytes is None else offset + nbytes
        file.seek(offset)
        magic = file.read(len(MAGIC))
        if magic == THIN_MAGIC:
            raise path_error(
                path,
                "thin archive, expected one that contains its members; create it with `ar rcs`",
            )
        if magic != MAGIC:
            raise path_error(path, f"begins with {magic!r}, expected an archive")
        yield from _members(file, path, offset + len(MAGIC), end)


def read_index(path: Path) -> set[str]:
    """Return the symbols that the members of an archive define, as its index in GNU's form says."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC) + _HEADER_NBYTES)
        name, digits = start[8:24].rstrip(), start[56:66].strip()
        if name not in (b"/", b"/SYM64/") or not digits.isdigit():
            return set()
        index = file.read(int(digits))
    width = 4 if name == b"/" else 8
    names = index[width * (1 + int.from_bytes(index[:width], "big")) :]
    return {text.decode("utf-8", "surrogateescape") for text in names.split(b"\0") if text}


def member_heads(file: IO[bytes], path: Path, nbytes: int) -> Iterator[tuple[str, bytes]]:
    """Iterate over the members of an archive, also of a thin one: name and first bytes of each.

    Raises ExportError if the archive is damaged.
    """
    file.seek(0)
    is_thin = file.read(len(MAGIC)) == THIN_MAGIC
    end = file.seek(0, 2)
    for name, offset, size in _members(file, path, len(MAGIC), end, is_thin=is_thin):
        if is_thin:
            with (path.parent / name).open("rb") as member:
                yield Path(name).name, member.read(nbytes)
        else:
            file.seek(offset)
            yield name, file.read(min(size, nbytes))


def _members(
    file: IO[bytes], path: Path, offset: int, end: int, *, is_thin: bool = False
) -> Iterator[Member]:
    long_names = b""
    while offset < end:
        file.seek(offset)
        header = file.read(_HEADER_NBYTES)
        digits = header[48:58].strip()
        start = offset + _HEADER_NBYTES
        name = header[:16].decode("utf-8", "replace").rstrip()
        is_apart = is_thin and name not in _INDEXES  # the member is a separate file
        is_sized = digits.isdigit() and (is_apart or int(digits) <= end - start)
        if header[58:] != b"`\n" or not is_sized:
            what = f"member header at {offset:#x}: {header[48:]!r}"
            raise path_error(path, f"{what}, expected a size within the archive")
        nbytes = int(digits)
        if name == "//":
            long_names = file.read(nbytes)
        elif name.startswith("#1/") and name[3:].isdecimal():
            before = min(int(name[3:]), nbytes)
            inner = file.read(before).rstrip(b"\0").decode("utf-8", "surrogateescape")
            if not inner.startswith(_BSD_INDEX):
                yield Member(inner, start + before, nbytes - before)
        elif name not in _INDEXES and not name.startswith(_BSD_INDEX):
            yield Member(_full_name(name, long_names), start, nbytes)
        offset = start if is_apart else start + nbytes + nbytes % 2


def _full_name(name: str, long_names: bytes) -> str:
    if name[:1] == "/" and name[1:].isdecimal():
        text, _, _ = long_names[int(name[1:]) :].partition(b"/\n")
        return text.decode("utf-8", "surrogateescape")
    return name.removesuffix("/")
