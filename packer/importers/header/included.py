"""The headers that count as parts of a header that the user named."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ...declare.constants.found import Place, chosen

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_FILE = re.compile(r'^# \d+ "(/[^"\n]+)"', re.MULTILINE)
# Folders that compilers search by themselves, in which the headers of many libraries are.
_SHARED = re.compile(r"/include(/[^/]*-linux-[^/]*)?$")


class OwnHeaders:
    """The headers that were named, by their absolute paths, and their parts.

    `patterns` choose the headers that count, in place of the rule for parts.
    """

    def __init__(self, paths: list[str], patterns: Sequence[str] = ()) -> None:
        self.paths = paths
        # A pattern is the end of a path, after a slash.
        starts = [("!*/", p[1:]) if p[:1] == "!" else ("*/", p) for p in patterns]
        self._is_chosen = cache(chosen([start + p.lstrip("/") for start, p in starts]))
        self._is_filtered = bool(patterns)
        self.folders = sorted({os.path.dirname(path) for path in paths})
        parts = {part for path in paths for part in _with_quoted(path)}
        self.parts = parts | {*map(os.path.realpath, parts)}  # gcc shortens links of the system

    def has(self, place: Place) -> bool:
        """Return True for a header that was named, or that one names in quotes, or beside one.

        The system's headers are not parts, unless named in quotes, or private as <bits/...>.
        """
        path = os.path.abspath(place.file)
        if self._is_filtered:
            return self._is_chosen(path)
        return path in self.parts or (not place.is_system and _is_below(path, self.folders))

    def is_beside(self, place: Place) -> bool:
        """Return True for any header in the folder of one, if the folder is that of one library."""
        if self._is_filtered:
            return False
        folders = [folder for folder in self.folders if not _SHARED.search(folder)]
        return _is_below(os.path.abspath(place.file), folders)

    def others(self, preprocessed: str) -> list[str]:
        """Return the paths of the headers that the named ones include in angle brackets."""
        names = [f"/{name}" for path in self.paths for mark, name in _includes(path) if mark == "<"]
        files = dict.fromkeys(_FILE.findall(preprocessed))
        return [next((f for f in files if f.endswith(name)), name[1:]) for name in names]


def _is_below(path: str, folders: list[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _includes(path: str) -> Iterator[tuple[str, str]]:
    """Yield the mark and the name of each #include, whatever #if is around it."""
    for mark, name in _INCLUDE.findall(Path(path).read_bytes()):
        yield mark.decode(), os.fsdecode(name)


def _with_quoted(header: str) -> set[str]:
    """Return a header, and the headers in or below its folder that quoted includes reach.

    The C library's <bits/...> count too: no other unit may include them.
    """
    folder = os.path.dirname(header)
    places = [folder, os.path.dirname(folder), *glob.glob(f"{glob.escape(folder)}/*-linux-*")]
    found: set[str] = set()
    waiting = [header]
    while waiting:
        path = os.path.abspath(waiting.pop())
        if path in found or not path.startswith(f"{folder}/") or not os.path.isfile(path):
            continue
        found.add(path)
        names = [n for mark, n in _includes(path) if mark == '"' or n.startswith("bits/")]
        here = os.path.dirname(path)
        waiting += [os.path.join(place, name) for name in names for place in (here, *places)]
    return found
