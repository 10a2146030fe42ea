"""Loads under a trust policy, with `trust` or after `harden`: checked, and from sealed memory."""

from __future__ import annotations

import os
from _thread import _local
from _weakref import ref

from .opening import open_verified, verified_bytes, verified_file, verify_needed
from .sealed import seal_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core import Library
    from ..module import Module
    from .rule import Trust
    from .sealed import Sealed


class _Thread(_local):
    is_inside = False  # a verified library, whose modules are being made
    trust: Trust | None = None  # its rule


_thread = _Thread()
# The root of every verified library that is in use, by its identity.
_roots: dict[tuple[object, ...], ref[Module]] = {}


def is_loading() -> bool:
    """Return True while this thread makes the modules of a verified library."""
    return _thread.is_inside


def load_verified(
    source: str | memoryview,
    trust: Trust | None,
    weights: str,
    root_of: Callable[[Library], Module],
) -> Module:
    """Verify and load a file or bytes; equal bytes that are in use give the same module.

    With `weights` "map" they do so only if they are of the same file, which was not written to.

    Raises VerifyError if the file or one that it needs is not trusted, and as `load` does.
    """
    file = _sealed(source, trust, weights)
    if trust is None and _thread.is_inside:
        trust = _thread.trust  # what a library inside a verified one needs is outside of it
    known = _roots.get(identity := file.identity)
    root = known() if known is not None else None
    if root is not None:
        os.close(file.descriptor)
        for encrypted in root._encrypted:
            encrypted.check_key()
        verify_needed(root._opened_for, trust)
        return root
    opened = open_verified(file, trust)
    outer = _thread.is_inside, _thread.trust
    _thread.is_inside, _thread.trust = True, trust
    try:
        root = root_of(opened.library)
    finally:
        _thread.is_inside, _thread.trust = outer
    root._opened_for = opened
    _remember(identity, root)
    return root


def _sealed(source: str | memoryview, trust: Trust | None, weights: str) -> Sealed:
    if isinstance(source, str):
        return verified_file(source, trust, weights)
    if trust is None and _thread.is_inside:
        return seal_bytes(source, f"<{len(source)} bytes>")  # verified with the library around it
    return verified_bytes(source, trust)


def verified_bytes_of(path: str, trust: Trust | None) -> memoryview:
    """Return the verified bytes of a standalone file, in sealed memory; raises VerifyError."""
    file = verified_file(path, trust)
    os.close(file.descriptor)  # the map remains
    return file.data


def _remember(identity: tuple[object, ...], root: Module) -> None:
    for other, known in list(_roots.items()):
        if known() is None:
            del _roots[other]
    _roots[identity] = ref(root)
