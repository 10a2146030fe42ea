"""Memory for secrets: private, in no core dump, locked if the system permits, wiped at the end."""

from __future__ import annotations

from ctypes import CDLL, addressof, c_char, c_int, c_size_t, c_void_p, memset
from mmap import (
    MADV_DONTDUMP,
    MAP_ANONYMOUS,
    MAP_PRIVATE,
    PROT_READ,
    PROT_WRITE,
    mmap,
)
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_libc = CDLL(None)
_libc.mlock.argtypes = (c_void_p, c_size_t)
_libc.mprotect.argtypes = (c_void_p, c_size_t, c_int)


def _wiper() -> Callable[[mmap], None]:
    """Make the function that wipes memory; it works when the globals of this file are gone."""
    protect, address_of, char, fill = _libc.mprotect, addressof, c_char, memset
    writable = PROT_READ | PROT_WRITE

    def wipe(memory: mmap) -> None:
        """Fill it with zeros."""
        address, nbytes = address_of(char.from_buffer(memory)), len(memory)
        if protect(address, nbytes, writable) == 0:
            fill(address, 0, nbytes)

    return wipe


class SecretMemory(mmap):
    """Anonymous pages that are wiped when the last view of them is freed."""

    def __new__(cls, nbytes: int) -> Self:
        self = super().__new__(cls, -1, nbytes, MAP_PRIVATE | MAP_ANONYMOUS)
        self.madvise(MADV_DONTDUMP)
        # A limit of locked memory (RLIMIT_MEMLOCK) may forbid it: then the pages may be swapped.
        _libc.mlock(self._address(), nbytes)
        return self

    def _address(self) -> int:
        return addressof(c_char.from_buffer(self))

    def protect(self) -> None:
        """Let no code write to it, as to the pages of a library."""
        _libc.mprotect(self._address(), len(self), PROT_READ)

    wipe = _wiper()

    def __del__(self) -> None:
        self.wipe()
