"""Private folders beside an output, which go away however their process ends.

A living process holds a lock (flock) on the file ``.lock`` in its folder; the kernel lets go of
it however the process ends, so a folder whose lock can be had is nobody's. Names, times and
process ids prove nothing and are not asked.

A sweeper may come between mkdir and flock. So a claim counts only if, with the lock held, the
lock file is still found at its path: a sweeper unlinks it only with that very lock held, so
from then on it cannot. Otherwise the claim begins anew under another name.

The lock file is the last to go, so a folder without one is empty and no more than rmdir is
tried on it: a folder of somebody else that happens to have such a name is never emptied. If
an orphaned compiler writes into the folder meanwhile, the lock file comes back for next time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

# Unpredictable, and short, so that it fits where the target's own name fits.
_NAME = re.compile(r"\.packer-[0-9a-f]{16}")
_LOCK_NAME = ".lock"


@contextlib.contextmanager
def private_directory(parent: Path) -> Iterator[Path]:
    """Have a private folder, mode 0700 and locked, for the length of a block.

    Parameters
    ----------
    parent : Path
        Where to make it, under a name ``.packer-<16 hex digits>``.

    Yields
    ------
    Path
        The folder; it goes with all that is in it when the block ends in any way.

    Raises
    ------
    OSError
        It cannot be made.
    """
    directory, lock = parent, None
    try:
        while lock is None:
            directory = parent / f".packer-{os.urandom(8).hex()}"
            lock = _claim(directory)
        yield directory
    finally:
        if directory != parent:  # a name was chosen, so the folder may be there
            _remove(directory)
        if lock is not None:
            os.close(lock)


def sweep(parent: Path) -> None:
    """Remove the private folders that dead processes left in a folder.

    Raises
    ------
    OSError
        Never: what cannot be read or removed stays.
    """
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _remove_stale(parent / entry.name)


def _claim(directory: Path) -> int | None:
    """Make a folder and lock it; None if a sweeper was quicker."""
    os.mkdir(directory, 0o700)
    try:
        lock = os.open(directory / _LOCK_NAME, os.O_CREAT | os.O_RDWR, 0o600)
    except FileNotFoundError:
        return None
    if _has_lock(lock) is not False and _is_at(lock, directory / _LOCK_NAME):
        return lock
    os.close(lock)
    return None


def _has_lock(lock: int) -> bool | None:
    """Try to take a lock; None on a file system that has none, where nobody ever sweeps."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_stale(directory: Path) -> None:
    with contextlib.suppress(OSError):
        if directory.lstat().st_uid != os.geteuid():  # root too leaves what others own
            return
        try:
            lock = os.open(directory / _LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            os.rmdir(directory)
            return
        try:
            if _has_lock(lock):
                _remove(directory)
        finally:
            os.close(lock)


def _remove(directory: Path) -> None:
    """Remove a folder whose lock is held, the lock file last; what cannot go stays."""
    lock = directory / _LOCK_NAME
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name != _LOCK_NAME:
                _remove_entry(directory / name)
        lock.unlink(missing_ok=True)
        try:
            os.rmdir(directory)
        except OSError:
            lock.touch(mode=0o600)


def _remove_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
