"""Opening a library of which every byte was verified: the sealed copy is what dlopen gets.

The libraries that it needs are opened first, under the same rule, unless they are in a folder of
the system: ld.so then finds them by their SONAME, and searches for no other file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from .._core import ElfFile, Library
from ..error import VerifyError
from ..hardening import check_hardened, is_active
from .policy import active_policy
from .sealed import Sealed, seal_bytes, seal_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rule import Trust

DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 14, 15, 29
SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/")
_MAX_DEPTH = 32


class Opened(NamedTuple):
    """A verified library, and those that were opened for it.

    Attributes
    ----------
    library : Library
        It owns the sealed copy.
    file : Sealed
        The copy.
    needed : list of Opened
        The libraries outside the system's folders that it needs.
    is_checked : bool
        True if the rules of `harden` are asked of it.
    """

    library: Library
    file: Sealed
    needed: list[Opened]
    is_checked: bool


def verified_file(path: str, trust: Trust | None, weights: str = "copy") -> Sealed:
    """Copy a file, and verify the copy by the policy and by `trust`; raises VerifyError.

    With "map" the blob stays in the file, if a rule has a hash tree and none needs all bytes.
    """
    policy = active_policy()

    def may_map(real_path: str) -> bool:
        rules = [trust, policy.of_file(real_path) if policy is not None else None]
        asked = [rule for rule in rules if rule is not None and not rule.accepts_anyone]
        return weights == "map" and bool(asked) and all(rule.has_tree for rule in asked)

    return _verified(seal_file(path, may_map), trust)


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

    Raises
    ------
    VerifyError
        A needed library is not trusted, or cannot be opened in this way.
    LibraryLoadError
        One of them cannot be loaded, or breaks a rule of `harden`.
    """
    try:
        if is_checked:
            check_hardened(file.name, file.data, file.path)
        needed = [
            _open_needed(file, name, path, trust, depth, is_checked and is_own)
            for name, path, is_own in _needed(file)
        ]
        library = Library(file.name, name=file.path, descriptor=file.descriptor)
    except BaseException:
        os.close(file.descriptor)
        raise
    if file.pieces is not None:
        file.pieces.map_into(library)
    return Opened(library, file, needed, is_checked)


def _open_needed(
    file: Sealed, name: str, path: str, trust: Trust | None, depth: int, is_checked: bool
) -> Opened:
    if depth == _MAX_DEPTH:
        text = f"{file.path}: libraries that need each other, deeper than {_MAX_DEPTH}"
        raise VerifyError(text, path=file.path, reason="needed")
    found = verified_file(path, trust)
    try:
        sonames = ElfFile(found.name, name=path).dynamic_names(DT_SONAME)
    except BaseException:
        os.close(found.descriptor)
        raise
    if sonames != [name]:
        os.close(found.descriptor)
        text = f"{file.path}: needs {name!r}: {path} has SONAME {', '.join(sonames) or 'none'}"
        hint = f"expected {name!r}, since a verified library is found by it; link it with -soname"
        raise VerifyError(f"{text}, {hint}", path=path, reason="needed")
    return open_verified(found, trust, depth + 1, is_checked)


def _needed(file: Sealed) -> Iterator[tuple[str, str, bool]]:
    """Iterate over the needed libraries outside the system's folders: their names and files.

    The last item is False if the environment names the folder. Others are opened here where the
    file or the environment names folders, so that ld.so does not search these: a file may be put
    there after this. After `harden` all are, so that they do not bind symbols of the file.
    """
    image = ElfFile(file.name, name=file.path)
    folders = [*_folders(file, image)]
    for name in image.dynamic_names(DT_NEEDED):
        if "/" in name:
            text = f"{file.path}: needs {name!r}, expected a name without a folder"
            raise VerifyError(f"{text}; link it with -soname", path=file.path, reason="needed")
        paths = ((os.path.join(folder, name), is_own) for folder, is_own in folders)
        path, is_own = next((found for found in paths if os.path.exists(found[0])), (None, True))
        if path is not None and not os.path.realpath(path).startswith(SYSTEM):
            yield name, path, is_own
        elif folders or is_active():
            _open_system(file, name, path)


def _open_system(file: Sealed, name: str, path: str | None) -> None:
    """Open a library of the system, for the rest of the process."""
    from ctypes import CDLL

    try:
        CDLL(name if path is None else os.path.realpath(path))
    except OSError as error:
        text = f"{file.path}: needs {name!r}: {error}"
        raise VerifyError(text, path=file.path, reason="needed") from error


def _folders(file: Sealed, image: ElfFile) -> Iterator[tuple[str, bool]]:
    """Iterate over the folders that ld.so would search before the system's, in its order.

    Each comes with True if the file names it, with False if the environment does.
    """
    runpath = image.dynamic_names(DT_RUNPATH)
    before = [] if runpath else image.dynamic_names(DT_RPATH)
    variable = os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":")
    origin = os.path.dirname(file.real_path)
    own = ((text, True) for text in before), ((text, True) for text in runpath)
    for text, is_own in (*own[0], *([(variable, False)] if variable else []), *own[1]):
        for given in text.split(":"):
            folder = given.replace("${ORIGIN}", "$ORIGIN")
            if "$ORIGIN" in folder and not origin:
                continue  # bytes have no folder
            folder = folder.replace("$ORIGIN", origin)
            if "$" in folder:
                place = f"{file.path}: searches {folder!r} for libraries"
                text = f"{place}, expected folders without tokens but $ORIGIN; link it with -rpath"
                raise VerifyError(text, path=file.path, reason="needed")
            yield folder or ".", is_own
