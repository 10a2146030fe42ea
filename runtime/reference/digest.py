"""The digest of a file, computed once on a machine: a record stores it for the file's state.

A record is a small file whose name is a digest of device, inode, size, time of modification and
change time, and of the machine's start. The change time decides: programs cannot set it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from stat import S_ISREG
from typing import TYPE_CHECKING, NamedTuple

from ..error import PackerError
from .store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# Two writes within a tick of the clock leave the same change time.
_TICK_S = 0.02
_MAX_KNOWN = 1024
_NUM_DIGITS = 64

# The digests that this process has computed or read.
_known: dict[State, str] = {}


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


class Digested(NamedTuple):
    """The digest of a file, and its state before and after the bytes were read."""

    sha256: str
    state: State


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


def digest_of(descriptor: int) -> Digested:
    """Return the digest of an open file: a known one, that of a record, or a computed one.

    Processes that ask for the same file at once compute it once. Raises OSError, and ValueError if
    the file changes while it is read.
    """
    _await_tick(os.fstat(descriptor))
    state = state_of(os.fstat(descriptor))
    if (known := _known.get(state)) is None:
        known = _recorded_or_computed(descriptor, state)
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[state] = known
    return Digested(known, state)


def record(descriptor: int, sha256: str) -> None:
    """Store the digest of an open file, which the caller computed; a failure is ignored."""
    state = state_of(os.fstat(descriptor))
    with contextlib.suppress(OSError, PackerError):
        Store.open().write_record(_name_of(state), sha256)


def _recorded_or_computed(descriptor: int, state: State) -> str:
    with contextlib.ExitStack() as stack:
        name, store = _name_of(state), None
        with contextlib.suppress(OSError, PackerError):  # an unusable folder costs time only
            store = Store.open()
            if recorded := _checked(store.read_record(name)):
                return recorded
            stack.enter_context(store.locked(name))
            if recorded := _checked(store.read_record(name)):
                return recorded
        found = _computed(descriptor, state)
        if store is not None:
            with contextlib.suppress(OSError):
                store.write_record(name, found)
        return found


def _computed(descriptor: int, state: State) -> str:
    digest = hashlib.sha256()
    for piece in _pieces_of(descriptor):
        digest.update(piece)
    if state_of(os.fstat(descriptor)) != state:
        raise ValueError("changed while it was read")
    return digest.hexdigest()


def _pieces_of(descriptor: int) -> Iterator[memoryview]:
    buffer = memoryview(bytearray(1 << 20))
    offset = 0
    while count := os.preadv(descriptor, [buffer], offset):
        offset += count
        yield buffer[:count]


def _await_tick(found: os.stat_result) -> None:
    """Wait until a later change of a file would give another change time."""
    age = time.time() - found.st_ctime
    if 0 <= age < _TICK_S:
        time.sleep(_TICK_S - age)


def _name_of(state: State) -> str:
    return hashlib.sha256(repr(tuple(state)).encode()).hexdigest()


def _checked(recorded: str) -> str:
    return recorded if is_digest(recorded) else ""


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


_boot = ""
