"""Private folders beside an output or in TMPDIR, removed even if their process is killed.

A living process holds a lock (flock) on the file ``.lock`` in its folder. The kernel releases the
lock when the process ends, so a folder whose lock is free has no owner. Names, times and process
ids prove nothing, and are not read.

A sweeper may run between mkdir and flock. So a claim counts only if the lock file still exists at
its path while the lock is held: a sweeper unlinks it only while holding that lock. Otherwise the
claim starts again under another name. A sweeper makes the same check, since a name may be used
again.

The lock file is removed last, so a folder without one is empty. The sweeper only tries rmdir on
it: another program's folder that has such a name is never emptied. If an orphaned compiler writes
into the folder meanwhile, the lock file is created again for the next sweep.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

# Short: it fits wherever the output's name fits. The first choice is the same in every run, so that
# a compiler cache (ccache) finds the commands of the last run; other names are unpredictable.
_NAME = re.compile(r"\.packer-[0-9a-f]{16}")
_FIRST_NAME = f".packer-{0:016x}"
_LOCK_NAME = ".lock"


@contextlib.contextmanager
def private_directory(parent: Path) -> Iterator[Path]:
    """Make a private folder, mode 0700 and locked, and remove it at the end of the block."""
    directory, lock = parent / _FIRST_NAME, None
    try:
        with contextlib.suppress(FileExistsError):
            lock = _claim(directory)
        while lock is None:
            directory = parent / f".packer-{os.urandom(8).hex()}"
            lock = _claim(directory)
        yield directory
    finally:
        if lock is not None or directory.name != _FIRST_NAME:  # the folder is ours, or missing
            _remove(directory)
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def temporary_directory() -> Iterator[Path]:
    """Make a private folder in TMPDIR, and remove the folders of dead processes there."""
    from tempfile import gettempdir  # not at start-up: some exports need it

    parent = Path(gettempdir())
    sweep(parent)
    with private_directory(parent) as directory:
        yield directory


def sweep(parent: Path) -> None:
    """Remove the private folders of dead processes; one that cannot be removed stays."""
    with contextlib.suppress(OSError), os.scandir(parent) as items:
        for item in items:
            if _NAME.fullmatch(item.name) and item.is_dir(follow_symlinks=False):
                _remove_stale(parent / item.name)


def _claim(directory: Path) -> int | None:
    """Make a folder and lock it; return None if a sweeper removed it first."""
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
    """Try to take a lock; return None if the file system has none, so no sweeper either."""
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
        if directory.lstat().st_uid != os.geteuid():  # even root leaves the folders of other users
            return
        try:
            lock = os.open(directory / _LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            os.rmdir(directory)
            return
        try:
            # A lock file that is no longer at its path was that of an earlier owner of the name.
            if _has_lock(lock) and _is_at(lock, directory / _LOCK_NAME):
                _remove(directory)
        finally:
            os.close(lock)


def _remove(directory: Path) -> None:
    """Remove a folder whose lock is held, the lock file last."""
    lock = directory / _LOCK_NAME
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name != _LOCK_NAME:
                _remove_tree(directory / name)
        lock.unlink(missing_ok=True)
        try:
            os.rmdir(directory)
        except OSError:
            lock.touch(mode=0o600)


def _remove_tree(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
