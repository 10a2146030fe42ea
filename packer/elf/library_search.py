"""Where the dynamic loader would find a library: its search, done by reading alone (ld.so(8)).

A name with a slash is a path. Any other is looked for in DT_RPATH of the library and of those that
asked for it (unless a library has DT_RUNPATH), LD_LIBRARY_PATH, its DT_RUNPATH, the cache of
ldconfig, and the default folders. A file for another machine is passed over.
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

_CACHE = "/etc/ld.so.cache"
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
# glibc, elf/dl-cache.h: struct cache_file_new and struct file_entry_new.
_CACHE_HEADER = Struct("<20sIIB3xI12x")
_CACHE_ENTRY = Struct("<iIIIQ")
_MAX_CACHE = 64 << 20
_E_MACHINE = slice(18, 20)
_ELFCLASS64 = 2
_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21, "loongarch64": 258}


@dataclass(frozen=True, slots=True)
class Requester:
    """A library that asks for others.

    Attributes
    ----------
    folder : str
        Where it lies: what ``$ORIGIN`` means.
    parent : Requester or None
        Who asked for it.
    """

    folder: str
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    parent: Requester | None = field(default=None)


def find_library(name: str, requester: Requester) -> str | None:
    """Find the file that a load would take for a needed library.

    Returns
    -------
    str or None
        Its path; None where there is none for this machine.
    """
    if "/" in name:
        path = _expanded(name, requester)
        return path if _is_usable(path) else None
    folders = (*_rpaths(requester), *_environment(requester), *_runpaths(requester))
    candidates = (os.path.join(folder, name) for folder in folders)
    cached = _cache().get(name, ())
    defaults = (os.path.join(folder, name) for folder in _default_folders())
    for path in (*candidates, *cached, *defaults):
        usable = _is_usable(path)
        if usable is not None:
            return path if usable else None
    return None


def find_system_library(name: str) -> str | None:
    """Find a library as a program that says nothing of its own finds it."""
    return find_library(name, Requester("/"))


def _rpaths(requester: Requester) -> Iterator[str]:
    """DT_RPATH, which holds for what is needed further down too; DT_RUNPATH switches it off."""
    if requester.runpath:
        return
    asking: Requester | None = requester
    while asking is not None:
        if not asking.runpath:
            yield from _folders(asking.rpath, asking)
        asking = asking.parent


def _runpaths(requester: Requester) -> Iterator[str]:
    return _folders(requester.runpath, requester)


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
    """Whether a load would take it; None where the search goes on.

    It goes on where nothing can be opened, or what is there is for another machine; anything
    else under the name ends it.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block
            return False
        with open(path, "rb") as file:
            head = file.read(20)
    except (OSError, ValueError):
        return None
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return False
    expected = _MACHINES.get(platform.machine())
    machine = int.from_bytes(head[_E_MACHINE], "little")
    return True if head[4] == _ELFCLASS64 and expected in (None, machine) else None


def _default_folders() -> tuple[str, ...]:
    machine = platform.machine()
    names = ("/lib", "/usr/lib")
    triple = tuple(f"{name}/{machine}-linux-gnu" for name in names)
    return (*triple, *(f"{name}64" for name in names), *names)


@cache
def _cache() -> dict[str, tuple[str, ...]]:
    """The paths of ldconfig's cache by name, in its order; empty where it cannot be read."""
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
    """Read ``ld.so.cache``: the names and paths, in its order; nothing of what is damaged."""
    start = data.find(_CACHE_MAGIC)  # an older cache may stand before it
    if start < 0 or len(data) < start + _CACHE_HEADER.size:
        return
    _, count, *_ = _CACHE_HEADER.unpack_from(data, start)
    entries = data[start + _CACHE_HEADER.size :][: count * _CACHE_ENTRY.size]
    whole = len(entries) // _CACHE_ENTRY.size * _CACHE_ENTRY.size
    for _, key, value, _, _ in _CACHE_ENTRY.iter_unpack(entries[:whole]):
        yield _string(data, start + key), _string(data, start + value)


def _string(data: bytes, start: int) -> str:
    return os.fsdecode(data[start : max(data.find(b"\0", start), start)])


def python_executable() -> str:
    """The program that runs: its DT_RPATH and its symbols are there for all that it loads."""
    return os.path.realpath(sys.executable)
