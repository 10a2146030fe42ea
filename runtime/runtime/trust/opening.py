"""Opening a library of which every byte was verified: the sealed copy is what dlopen gets.

The libraries that it needs are opened first, under the same rule, unless they are in a folder of
the system: ld.so then finds them by their SONAME, and searches for no other file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from .._core import ElfFile, Library
from ..error import LibraryLoadError, VerifyError
from .hardening import check_hardened, is_active
from .policy import active_policy
from .sealed import Sealed, seal_bytes, seal_file

if TYPE_CHECKING:
    from .rule import Trust

DT_SONAME = 14
_MAX_DEPTH = 32


class Opened(NamedTuple):
    """A verified library, and the libraries that were opened for it."""

    library: Library  # owns the sealed copy
    file: Sealed
    needed: list[Opened]  # the libraries outside the system's folders that it needs
    is_checked: bool  # the rules of `harden` are asked of it


def verified_file(
    path: str, trust: Trust | None, weights: str = "copy", descriptor: int | None = None
) -> Sealed:
    """Copy a file, and verify the copy by the policy and by `trust`; raises VerifyError.

    With "map" the blob stays in the file, if a rule has a hash tree and none needs all bytes. A
    descriptor of the file is closed.
    """
    policy = active_policy()

    def may_map(real_path: str) -> bool:
        rules = [trust, policy.of_file(real_path) if policy is not None else None]
        asked = [rule for rule in rules if rule is not None and not rule.accepts_anyone]
        return weights == "map" and bool(asked) and all(rule.has_tree for rule in asked)

    return _verified(seal_file(path, may_map, descriptor), trust)


def verified_bytes(data: memoryview, trust: Trust | None) -> Sealed:
    """Copy bytes, and verify the copy; raises VerifyError."""
    return _verified(seal_bytes(data, f"<{len(data)} bytes>"), trust)


def _verified(file: Sealed, trust: Trust | None) -> Sealed:
    try:
        _prove(file, trust)
    except BaseException:
        os.close(file.descriptor)
        raise
    return file


def _prove(file: Sealed, trust: Trust | None) -> None:
    """Ask the policy and `trust` of a copy."""
    policy = active_policy()
    if policy is not None:
        (policy.of_file(file.real_path) if file.real_path else policy.bytes).verify(file)
    if trust is not None:
        trust.verify(file)


def verify_again(opened: Opened) -> None:
    """Ask the policy of what is open already: it may be another one than at the load."""
    _prove(opened.file, None)
    verify_needed(opened, None)


def verify_needed(opened: Opened, trust: Trust | None) -> None:
    """Verify what is open for a library already: another rule may have accepted it."""
    if opened.is_checked:
        check_hardened(opened.file.name, opened.file.data, opened.file.path)
    for needed in opened.needed:
        _prove(needed.file, trust)
        verify_needed(needed, trust)


def open_verified(
    file: Sealed, trust: Trust | None, depth: int = 0, is_checked: bool = True
) -> Opened:
    """Open the sealed copy, which was verified, after the libraries that it needs.

    A library that the environment names (`is_checked` is False) may run code when it is opened.
    Raises VerifyError or LibraryLoadError if one of them is refused or cannot be opened.
    """
    try:
        if is_checked:
            check_hardened(file.name, file.data, file.path)
        needed = _open_needed(file, trust, depth, is_checked)
        library = Library(file.name, name=file.path, descriptor=file.descriptor)
    except BaseException:
        os.close(file.descriptor)
        raise
    if file.pieces is not None:
        file.pieces.map_into(library)
    return Opened(library, file, needed, is_checked)


def _open_needed(file: Sealed, trust: Trust | None, depth: int, is_checked: bool) -> list[Opened]:
    """Open the libraries outside of the system's folders that the file needs.

    After `harden` the system's libraries are opened first too, so that they do not bind symbols of
    the file.
    """
    opened: list[Opened] = []

    def open_one(name: str, path: str, descriptor: int, is_own: bool) -> Library:
        found = verified_file(path, trust, descriptor=descriptor)
        _check_name(file, name, found, depth)
        opened.append(open_verified(found, trust, depth + 1, is_checked and is_own))
        return opened[-1].library

    try:
        image = ElfFile(file.name, name=file.path)
        image.open_needed(os.path.dirname(file.real_path), is_active(), open_one)
    except LibraryLoadError as error:
        if error.reason != "needed":
            raise
        raise VerifyError(str(error), path=file.path, reason="needed") from error
    return opened


def _check_name(file: Sealed, name: str, found: Sealed, depth: int) -> None:
    """Refuse a library that ld.so does not find by the name, or one too deep; closes it then."""
    text = f"{file.path}: libraries that need each other, deeper than {_MAX_DEPTH}"
    try:
        sonames = ElfFile(found.name, name=found.path).dynamic_names(DT_SONAME)
        if sonames == [name] and depth < _MAX_DEPTH:
            return
        if sonames != [name]:
            text = f"{file.path}: needs {name!r}: {found.path} has SONAME"
            text = f"{text} {', '.join(sonames) or 'none'}, expected {name!r}, since a verified"
            text += " library is found by it; link it with -soname"
        raise VerifyError(text, path=found.path, reason="needed")
    except BaseException:
        os.close(found.descriptor)
        raise
