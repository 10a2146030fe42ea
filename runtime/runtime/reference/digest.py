"""The digest of a file, computed once on a machine: an entry stores it for the file's state.

An entry is a small file whose name is a digest of device, inode, size, time of modification and
change time, and of the machine's start. The change time decides: programs cannot set it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from ..error import PackerError
from .file_state import State, is_digest, state_of
from .store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

# Two writes within a tick of the clock leave the same change time.
_TICK_S = 0.02
_MAX_KNOWN = 1024

# The digests that this process has computed or read.
_known: dict[State, str] = {}


class Digested(NamedTuple):
    """The digest of a file, and its state before and after the bytes were read."""

    sha256: str
    state: State


def digest_of(descriptor: int) -> Digested:
    """Return the digest of an open file: a known one, that of an entry, or a computed one.

    Processes that ask for the same file at once compute it once. Raises OSError, and ValueError if
    the file changes while it is read.
    """
    _await_tick(os.fstat(descriptor))
    state = state_of(os.fstat(descriptor))
    if (known := _known.get(state)) is None:
        known = _stored_or_computed(descriptor, state)
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[state] = known
    return Digested(known, state)


def remember(descriptor: int, sha256: str) -> None:
    """Store the digest of an open file, which the caller computed; a failure is ignored."""
    state = state_of(os.fstat(descriptor))
    with contextlib.suppress(OSError, PackerError):
        Store.open().write_entry(_name_of(state), sha256)


def _stored_or_computed(descriptor: int, state: State) -> str:
    with contextlib.ExitStack() as stack:
        name, store = _name_of(state), None
        with contextlib.suppress(OSError, PackerError):  # an unusable folder costs time only
            store = Store.open()
            if stored := _checked(store.read_entry(name)):
                return stored
            stack.enter_context(store.locked(name))
            if stored := _checked(store.read_entry(name)):
                return stored
        found = _computed(descriptor, state)
        if store is not None:
            with contextlib.suppress(OSError):
                store.write_entry(name, found)
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


def _checked(stored: str) -> str:
    return stored if is_digest(stored) else ""
