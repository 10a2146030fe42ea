"""The modules of this process that references name, by digest."""

from __future__ import annotations

from _weakref import ref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..module import Module

# The modules that came last by reference stay loaded, so that a worker that gets the same one with
# each task loads it once.
_NUM_KEPT = 8

_resident: dict[str, ref[Module]] = {}
_kept: dict[str, Module] = {}


def find(sha256: str) -> Module | None:
    """Return the module of the file with a digest, if it is in use."""
    known = _resident.get(sha256)
    return known() if known is not None else None


def remember(module: Module, sha256: str) -> None:
    """Find the module by its digest from now on, while it is in use."""
    for other, known in list(_resident.items()):
        if known() is None:
            _resident.pop(other, None)
    _resident[sha256] = ref(module)


def keep(module: Module, sha256: str) -> None:
    """Keep a module loaded until others came after it."""
    remember(module, sha256)
    _kept.pop(sha256, None)
    _kept[sha256] = module
    while len(_kept) > _NUM_KEPT:
        _kept.pop(next(iter(_kept), ""), None)
