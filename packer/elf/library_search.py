"""Where the dynamic loader would find a library: its search, without loading (ld.so(8)).

A name with a slash is a path. Any other name is searched in DT_RPATH of the library and of its
requesters (unless a library has DT_RUNPATH), LD_LIBRARY_PATH, its DT_RUNPATH, the cache of
ldconfig, and the default folders. A file for another machine is skipped.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from struct import Struct

from ..machine import BY_NAME
from .structures import EI_CLASS, ELF_MAGIC, ELFCLASS64, Header, size_of, unpack

_CACHE = "/etc/ld.so.cache"
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
# glibc, elf/dl-cache.h: struct cache_file_new and struct file_entry_new.
_CACHE_HEADER = Struct("<20sIIB3xI12x")
_CACHE_FILE = Struct("<iIIIQ")
_MAX_CACHE = 64 << 20


@dataclass(frozen=True, slots=True)
class Requester:
    """A library that needs others."""

    folder: str  # the folder of the library: the value of ``$ORIGIN``
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    parent: Requester | None = field(default=None)  # the library that needs it


def find_library(name: str, requester: Requester) -> str | None:
    """Find the file that a load would use for a needed library; None if there is none."""
    if "/" in name:
        path = _expanded(name, requester)
        return path if _is_usable(path) else None
    runpaths = _folders(requester.runpath, requester)
    folders = (*_rpaths(requester), *_environment(requester), *runpaths)
    candidates = (os.path.join(folder, name) for folder in folders)
    cached = _cache().get(name, ())
    defaults = (os.path.join(folder, name) for folder in _default_folders())
    for path in (*candidates, *cached, *defaults):
        usable = _is_usable(path)
        if usable is not None:
            return path if usable else None
    return None


def find_system_library(name: str) -> str | None:
    """Find a library for a program without DT_RPATH and DT_RUNPATH."""
    return find_library(name, Requester("/"))


def _rpaths(requester: Requester) -> Iterator[str]:
    """DT_RPATH also applies to indirect requirements; DT_RUNPATH disables it."""
    if requester.runpath:
        return
    parent: Requester | None = requester
    while parent is not None:
        if not parent.runpath:
            yield from _folders(parent.rpath, parent)
        parent = parent.parent


def _environment(requester: Requester) -> Iterator[str]:
    text = os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":")
    return _folders((text,), requester) if text else iter(())


def _folders(paths: Iterable[str], requester: Requester) -> Iterator[str]:
    """The folders of path lists; an empty one is the current folder."""
    for path in paths:
        for folder in path.split(":"):
            yield _expanded(folder or ".", requester)


def _expanded(text: str, requester: Requester) -> str:
    machine = platform.machine()
    lib = f"lib/{machine}-linux-gnu" if os.path.isdir(f"/usr/lib/{machine}-linux-gnu") else "lib64"
    for name, value in (("ORIGIN", requester.folder), ("LIB", lib), ("PLATFORM", machine)):
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return text


def _is_usable(path: str) -> bool | None:
    """Return True if a load would use the file, None if it would search on.

    It searches on if the file cannot be opened or is for another machine. Any other file ends
    the search: the load fails.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block
            return False
        with open(path, "rb") as file:
            head = file.read(size_of(Header))
    except (OSError, ValueError):
        return None
    if not head.startswith(ELF_MAGIC) or len(head) < size_of(Header):
        return False
    (header,) = unpack(Header, head)
    machine = BY_NAME.get(platform.machine())
    is_native = machine is None or machine.e_machine == header.e_machine
    return True if head[EI_CLASS] == ELFCLASS64 and is_native else None


def _default_folders() -> tuple[str, ...]:
    machine = platform.machine()
    names = ("/lib", "/usr/lib")
    triple = tuple(f"{name}/{machine}-linux-gnu" for name in names)
    return (*triple, *(f"{name}64" for name in names), *names)


@cache
def _cache() -> dict[str, tuple[str, ...]]:
    """Return the paths of ldconfig's cache by name, in order; empty if it cannot be read."""
    try:
        with open(_CACHE, "rb") as file:
            data = file.read(_MAX_CACHE)
    except OSError:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, path in parse_cache(data):
        found[name] = (*found.get(name, ()), path)
    return found


def parse_cache(data: bytes) -> Iterator[tuple[str, str]]:
    """Read names and paths from ``ld.so.cache``, in order; damaged entries are skipped."""
    start = data.find(_CACHE_MAGIC)  # an older cache may precede it
    if start < 0 or len(data) < start + _CACHE_HEADER.size:
        return
    _, count, *_ = _CACHE_HEADER.unpack_from(data, start)
    files = data[start + _CACHE_HEADER.size :][: count * _CACHE_FILE.size]
    whole = len(files) // _CACHE_FILE.size * _CACHE_FILE.size
    for _, key, value, _, _ in _CACHE_FILE.iter_unpack(files[:whole]):
        yield _string(data, start + key), _string(data, start + value)


def _string(data: bytes, start: int) -> str:
    return os.fsdecode(data[start : max(data.find(b"\0", start), start)])


def python_executable() -> str:
    """Return the running program: its DT_RPATH and symbols apply to all that it loads."""
    return os.path.realpath(sys.executable)
