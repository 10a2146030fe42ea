"""The folder of fetched libraries: each is one file, named by its digest, whole or absent.

A file is written without a name (O_TMPFILE) and linked into the folder when its digest is right, so
that a writer that is killed leaves nothing. Locks are flock(2), which the kernel releases when its
holder dies.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING

from ..error import LibraryLoadError

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "DSO_CACHE"
_ADVICE = f"choose a different folder with {VARIABLE}"
_RECORDS, _LOCKS = "verified", "locks"
# Beyond this number of entries the older half is removed.
_MAX_RECORDS = 2048
# Errors of file systems without unnamed files.
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL}

_held: set[int] = set()


def cache_path() -> str:
    """Return the folder, which may be missing; raises LibraryLoadError if no variable names it."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):  # the XDG specification: such a value is not valid
        root = os.path.expanduser("~/.cache")
    if not os.path.isabs(root):
        text = f"no folder for fetched libraries: HOME is not set; {_ADVICE}"
        raise LibraryLoadError(text, reason="io")
    return os.path.join(root, "dso-packer", "libraries")


class Store:
    """The folder; make it with `open`.

    Attributes
    ----------
    path : str
        The folder, absolute.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    @staticmethod
    def open() -> Store:
        """Make the folder if it is missing.

        Raises
        ------
        LibraryLoadError
            It cannot be made, or other users may write to it.
        """
        path = cache_path()
        folders = [path, *(os.path.join(path, name) for name in (_RECORDS, _LOCKS))]
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            for folder in folders[1:]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700)
            states = [os.stat(path), *map(os.lstat, folders[1:])]
        except (OSError, ValueError) as error:
            text = f"{path}: no folder for fetched libraries: {_why(error)}; {_ADVICE}"
            raise LibraryLoadError(text, path=path) from error
        for folder, found in zip(folders, states, strict=True):
            _check_owner(folder, found)
        return Store(path)

    def file(self, sha256: str) -> str:
        """Return the path of a library, which may be missing."""
        return os.path.join(self.path, f"{sha256}.so")

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Wait until no other thread or process has this lock, and hold it.

        Raises OSError. The holder removes the lock's file, so a lock counts only if its file still
        exists afterwards.
        """
        path = os.path.join(self.path, _LOCKS, name)
        descriptor = _lock(path)
        _held.add(descriptor)
        try:
            yield
        finally:
            if descriptor in _held:  # not in a child that was forked meanwhile
                _held.discard(descriptor)
                with contextlib.suppress(OSError):
                    os.unlink(path)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)

    @contextlib.contextmanager
    def writing(self, final: str) -> Iterator[int]:
        """Give the descriptor of a new file; it gets its name if the block ends without an error.

        The caller holds the lock of `final`. Raises OSError.
        """
        try:
            descriptor = os.open(self.path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o400)
            part = ""
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
            part = f"{final}.part"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)  # of a writer that was killed
            descriptor = os.open(part, flags, 0o400)
        try:
            yield descriptor
            if part:
                os.rename(part, final)
            else:
                _link(descriptor, final)
            part = ""
        finally:
            if part:
                with contextlib.suppress(OSError):
                    os.unlink(part)
            os.close(descriptor)

    def read_entry(self, name: str) -> str:
        """Return the text of an entry; "" if there is none."""
        try:
            with open(os.path.join(self.path, _RECORDS, name), encoding="ascii") as file:
                return file.read(100)
        except (OSError, ValueError):
            return ""

    def write_entry(self, name: str, text: str) -> None:
        """Write an entry, as a whole or not at all; raises OSError."""
        folder = os.path.join(self.path, _RECORDS)
        new = os.path.join(folder, f".{os.urandom(8).hex()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.write(descriptor, text.encode("ascii"))
            finally:
                os.close(descriptor)
            os.rename(new, os.path.join(folder, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
        _trim(folder)


def _why(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)


def _check_owner(folder: str, found: os.stat_result) -> None:
    """Refuse a folder to which others may write."""
    is_own = found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)
    if not is_own or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        what = f"mode {stat.filemode(found.st_mode)} of user {found.st_uid}"
        text = f"{folder}: {what}, expected a folder that this user alone may write to; {_ADVICE}"
        raise LibraryLoadError(text, path=folder, reason="policy")


def _lock(path: str) -> int:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _link(descriptor: int, final: str) -> None:
    """Give an unnamed file its name; one that is there was damaged, and is replaced."""
    folder = os.open(os.path.dirname(final), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(final)
        # With a dir_fd Python calls linkat(2), which follows the link of /proc.
        name = os.path.basename(final)
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _trim(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) <= _MAX_RECORDS:
        return
    with contextlib.suppress(OSError):
        paths = [os.path.join(folder, name) for name in names]
        paths.sort(key=lambda path: os.stat(path).st_mtime_ns)
        for path in paths[: len(paths) // 2]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _after_fork() -> None:
    """Close the locks of the parent's threads: a copy would hold them after the parent died."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)
