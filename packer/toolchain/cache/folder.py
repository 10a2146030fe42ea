"""The folder of the object cache: entries that are whole or absent, and a limit for their size.

Each entry is one file, in one of 16 folders by the first digit of its name: a digest of the rest,
and the bytes. A file is written under another name and renamed, so that processes may share the
folder without a lock. If anything fails, the caller compiles as it would without a cache.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator

try:
    from _blake2 import blake2b  # hashlib's import would load OpenSSL, and take longer than a hit
except ImportError:
    from hashlib import blake2b

# The largest size of all entries together, and of one.
LIMIT_NBYTES = 1 << 30
_LARGEST_NBYTES = 32 << 20
# A folder that is over its share keeps this part of it, so that the next entries find room.
_KEPT = 0.9
_DIGITS = "0123456789abcdef"
_DIGEST_NBYTES = 32
_UNFINISHED = ".new-"
_UNFINISHED_S = 3600.0  # then its writer was killed
_VARIABLE = "PACKER_CACHE"
_OFF = "off"


def digest_of(*parts: bytes) -> str:
    """Return the hexadecimal digest of a sequence of parts, which no other sequence has."""
    found = blake2b(digest_size=_DIGEST_NBYTES)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


def cache_path() -> str | None:
    """Return the folder for objects, which may be missing; None if PACKER_CACHE is ``off``."""
    named = os.environ.get(_VARIABLE, "")
    if named:
        return None if named == _OFF else os.path.abspath(os.path.expanduser(named))
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):  # the XDG specification: such a value is not valid
        root = os.path.expanduser("~/.cache")
    return os.path.join(root, "dso-packer", "objects") if os.path.isabs(root) else None


class Folder:
    """The folder of the cache, opened once: another folder at its path later has no effect.

    `limit` is the largest size of all entries together, in bytes. Raises OSError if the folder is
    missing and cannot be made, or is not this user's alone.
    """

    def __init__(self, path: str, limit: int = LIMIT_NBYTES) -> None:
        self._limit = limit
        self._written: set[str] = set()
        _make(path)
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _refuse_shared(os.fstat(self._folder))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the folder."""
        os.close(self._folder)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an entry; None if there is none. A damaged one is removed."""
        path = f"{name[0]}/{name}"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._folder)
        except OSError:
            return None
        with open(descriptor, "rb") as file, contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            data = file.read() if found.st_uid == os.geteuid() else b""
            if data[:_DIGEST_NBYTES] == _checksum(name, data[_DIGEST_NBYTES:]):
                with contextlib.suppress(OSError):
                    os.utime(descriptor)  # the time of use, by which `trim` removes
                return data[_DIGEST_NBYTES:]
            os.unlink(path, dir_fd=self._folder)
        return None

    def write(self, name: str, data: bytes) -> None:
        """Write an entry, as a whole or not at all; a failure is ignored."""
        if len(data) > _LARGEST_NBYTES:
            return
        new = f"{name[0]}/{_UNFINISHED}{os.urandom(8).hex()}"
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name[0], 0o700, dir_fd=self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            try:
                with open(os.open(new, flags, 0o600, dir_fd=self._folder), "wb") as file:
                    file.write(_checksum(name, data) + data)
                folder = self._folder
                os.rename(new, f"{name[0]}/{name}", src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(new, dir_fd=self._folder)
                raise
            self._written.add(name[0])

    def trim(self) -> None:
        """Remove what was not used for the longest time, until what was written has room."""
        for digit in self._written:
            self._trim(digit, self._limit // len(_DIGITS))
        self._written.clear()

    def clear(self) -> None:
        """Remove all entries."""
        for digit in _DIGITS:
            self._trim(digit, 0)

    def entries(self) -> Iterator[int]:
        """Yield the size of each entry in bytes."""
        for digit in _DIGITS:
            for _, nbytes, name in self._listed(digit):
                if not name.startswith(_UNFINISHED):
                    yield nbytes

    def _trim(self, digit: str, share: int) -> None:
        listed = sorted(self._listed(digit))
        total, now = sum(nbytes for _, nbytes, _ in listed), time.time()
        kept = share if total <= share else int(share * _KEPT)
        for used, nbytes, name in listed:
            is_lost = name.startswith(_UNFINISHED) and now - used > _UNFINISHED_S
            if total > kept or is_lost:
                with contextlib.suppress(OSError):
                    os.unlink(f"{digit}/{name}", dir_fd=self._folder)
                total -= nbytes

    def _listed(self, digit: str) -> list[tuple[float, int, str]]:
        """Return the time of use, size and name of each file in a folder of entries."""
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError):
            descriptor = os.open(digit, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._folder)
            try:
                with os.scandir(descriptor) as items:
                    for item in items:
                        with contextlib.suppress(OSError):  # another process removed it
                            status = item.stat(follow_symlinks=False)
                            found.append((status.st_mtime, status.st_size, item.name))
            finally:
                os.close(descriptor)
        return found


def _checksum(name: str, data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_NBYTES, key=name.encode()[:64]).digest()


def _make(path: str) -> None:
    """Make a folder and its parents, but none within another user's folder: for sudo, say."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    if missing and os.stat(path).st_uid not in (0, os.geteuid()):
        raise PermissionError(f"{path} is another user's")
    for new in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process made it meanwhile
            os.mkdir(new, 0o700)


def _refuse_shared(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError("it is another user's")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("others can write to it")
