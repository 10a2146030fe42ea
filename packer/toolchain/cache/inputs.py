"""The inputs of a compilation besides its source: files, and places where it found none.

Both are written down as text when a source is compiled. Later the text is compared with the files
that there are now, so that no preprocessor runs. A place where a header could be, but was not,
counts too: a header that is put there would be read instead of another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .folder import digest_of

# Stands for the private folder, whose name differs between exports.
PRIVATE = "\x01"
# Beside a header: the same, compiled before, which a compiler would read instead.
_PRECOMPILED = (".gch", ".pch")
_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_DIRECTIVE = re.compile(
    rb"^[ \t]*#[ \t]*(?:include|include_next|import|embed)\b[ \t]*(.*)", re.MULTILINE
)
_QUESTION = re.compile(rb"\b__has_(?:include(?:_next)?|embed)[ \t]*\([ \t]*(.*)")
_NAME = re.compile(rb'<([^>\n]+)>|"([^"\n]+)"')
# Digraphs, and the assembler's .incbin and .include, also joined of literals: ".inc" "bin".
_UNREADABLE = re.compile(
    rb'%:|\?\?=|incbin|(["\s;(]|\\[nt])\.inc(b|bi|l|lu|lud|lude)?\b', re.IGNORECASE
)
# Text that may become one of them, in a file with inline assembler: less of the name, its letters
# as escapes, macros of the assembler.
_ASSEMBLER = re.compile(rb"\b(__)?asm(__)?\b", re.IGNORECASE)
_MAY_BE_UNREADABLE = re.compile(
    rb'(["\s;(]|\\[nt])\.(i|in)?["\\)]|\\(x0*(2e|[46][93e])|0?(56|1[015][1643]))'
    rb"|\.(macro|irp|altmacro)\b",
    re.IGNORECASE,
)
# A file's time may be this much before the clock's.
_CLOCK_NS = 20_000_000


class _Names(NamedTuple):
    """The headers that a text asks for."""

    searched: frozenset[str]
    quoted: frozenset[str]
    is_computed: bool


class Inputs:
    """The files that compilations of one export read.

    Compilers start in the folder `start`; `private` is the private folder, as commands spell it.
    """

    def __init__(self, start: Path, private: str) -> None:
        self._start = str(start)
        self._private = private.removeprefix("./")
        self._digests: dict[str, str | None] = {}
        self._names: dict[str, _Names | None] = {}
        self._states: dict[str, str | None] = {}

    def state(self, text: str) -> str | None:
        """Return a digest of the files of a text as they are now; None if one is missing."""
        if text not in self._states:
            self._states[text] = self._state(text)
        return self._states[text]

    def _state(self, text: str) -> str | None:
        parts = []
        for path in column(text, "file"):
            if (digest := self._digest(path)) is None:
                return None
            parts.append(digest.encode())
        found = (os.access(self._path(path), os.F_OK) for path in _places(text))
        return digest_of(bytes(found), *parts)

    def describe(
        self, source: str, headers: Sequence[str], forced: Sequence[str], folders: Sequence[str]
    ) -> str | None:
        """Write down what a compilation has read, for `state`.

        `headers` are the files that it read, in any order; the source may be among them. `forced`
        are the names of headers that options name, `folders` where the compiler searches. Return
        None if a file asks for others in a form that is not understood.
        """
        searched, places = set(forced), {os.path.join(".", name) for name in forced}
        main = self._hidden(source)
        files = [path for path in map(self._hidden, headers) if path != main]
        for path in (main, *files):
            if (names := self._names_of(path)) is None:
                return None
            searched |= names.searched
            places |= {os.path.join(os.path.dirname(path), name) for name in names.quoted}
            if names.is_computed:
                searched |= set(_suffixes(files, folders))
        files += [] if main.startswith(PRIVATE) else [main]  # else its text alone counts
        rows = {"file": files, "place": places.difference(files), "name": searched}
        lines = [f"{key} {value}" for key, values in rows.items() for value in sorted(values)]
        lines += [f"folder {folder}" for folder in dict.fromkeys(folders)]
        return None if any("\n" in line for line in lines) else "\n".join(lines)

    def unchanged_since(self, text: str, started_ns: int) -> bool:
        """Return True if every file of a text is older than the compilation that read it."""
        for path in (*column(text, "file"), *_places(text)):
            try:
                changed = os.stat(self._path(path)).st_ctime_ns
            except OSError:
                continue
            if changed > started_ns - _CLOCK_NS and not path.startswith(PRIVATE):
                return False
        return True

    def _names_of(self, path: str) -> _Names | None:
        if path not in self._names:
            data = self._read(path)
            self._names[path] = None if data is None else _names_in(data)
        return self._names[path]

    def _digest(self, path: str) -> str | None:
        if path not in self._digests:
            data = self._read(path)
            self._digests[path] = None if data is None else digest_of(data)
        return self._digests[path]

    def _read(self, path: str) -> bytes | None:
        try:
            with open(self._path(path), "rb") as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def _hidden(self, path: str) -> str:
        path = path.removeprefix("./")  # as GCC does
        inside = path.removeprefix(f"{self._private}/")
        return path if inside == path else f"{PRIVATE}/{inside}"

    def _path(self, path: str) -> str:
        return os.path.join(self._start, path.replace(PRIVATE, self._private, 1))


def read_dependencies(text: str) -> list[str]:
    r"""Return the files of a rule that a compiler wrote for make.

    >>> read_dependencies("o: a.c \\\n one\\ two.h\n")
    ['a.c', 'one two.h']
    """
    words = re.findall(r"(?:[^\s\\]|\\[^\n])+", text.partition(": ")[2])
    paths = [re.sub(r"\\([\s#:\\])", r"\1", word).replace("$$", "$") for word in words]
    return list(dict.fromkeys(paths))


def column(text: str, key: str) -> Iterator[str]:
    """Yield the values of the lines of a text that begin with a key."""
    start = f"{key} "
    return (line.removeprefix(start) for line in text.split("\n") if line.startswith(start))


def _places(text: str) -> Iterator[str]:
    """Yield the places of a text where a compiler may look for a header."""
    yield from column(text, "place")
    for path in column(text, "file"):
        yield from (f"{path}{suffix}" for suffix in _PRECOMPILED)
    names = [*column(text, "name")]
    for folder in column(text, "folder"):
        for name in names:
            yield os.path.join(folder, name)


def _names_in(data: bytes) -> _Names | None:
    """Find the headers that a text asks for; None if it asks in a form that is not understood."""
    data = _SPLICE.sub(b"", data)
    if may_read_files(_DIRECTIVE.sub(b"", data)):
        return None
    searched, quoted, is_computed = set(), set(), False
    for kind in (_DIRECTIVE, _QUESTION):
        for asked in kind.findall(data):
            found = _NAME.match(asked)
            if found is None:
                is_computed = True
                continue
            name = os.fsdecode(found[1] or found[2])
            searched.add(name)
            if found[2]:
                quoted.add(name)
    return _Names(frozenset(searched), frozenset(quoted), is_computed)


def may_read_files(code: bytes) -> bool:
    """Return True if the assembler may read a file that C text without directives names."""
    if _UNREADABLE.search(code):
        return True
    return bool(_ASSEMBLER.search(code) and _MAY_BE_UNREADABLE.search(code))


def _suffixes(files: Iterable[str], folders: Iterable[str]) -> Iterator[str]:
    """Yield the names by which files are found in folders, for names that macros make."""
    for path in files:
        for folder in folders:
            if path.startswith(f"{folder}/"):
                yield path.removeprefix(f"{folder}/")
