"""The state of a file: what tells on one machine that its content is the same as before."""

from __future__ import annotations

import os
from stat import S_ISREG
from typing import NamedTuple

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NUM_DIGITS = 64
_boot = ""


class State(NamedTuple):
    """The identity of a file's content on one machine, until it restarts."""

    boot: str
    device: int
    inode: int
    nbytes: int
    mtime_ns: int
    ctime_ns: int

    @property
    def key(self) -> tuple[int, int, int, int]:
        """The same values as `Library.key`."""
        return self[1:5]


def state_of(found: os.stat_result) -> State:
    """Return the state of a file of this machine."""
    return State(
        _boot_id(),
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def open_regular(path: str) -> int:
    """Open a regular file; raises OSError, or ValueError for another kind of file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("not a regular file")
    return descriptor


def is_digest(text: object) -> bool:
    """Return True for the lower-case hexadecimal digits of a SHA-256."""
    return (
        isinstance(text, str)
        and len(text) == _NUM_DIGITS
        and not set(text) - set("0123456789abcdef")
    )


def _boot_id() -> str:
    global _boot
    if not _boot:
        try:
            with open(_BOOT_ID, encoding="ascii") as file:
                _boot = file.read().strip()
        except OSError:
            _boot = os.urandom(16).hex()  # equal to that of no other process
    return _boot
