"""Opening a library of which every byte was verified: the sealed copy is what dlopen gets.

The libraries that it needs are opened first, under the same rule, unless they are in a folder of
the system: ld.so then finds them by their SONAME, and searches for no other file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._core import ElfFile, Library
from ..error import VerifyError
from .policy import active_policy
from .sealed import Sealed, seal_bytes, seal_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rule import Trust

DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 14, 15, 29
SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/")
_MAX_DEPTH = 32


class Opened:
    """A verified library, and those that were opened for it.

    Attributes
    ----------
    library : Library
        It owns the sealed copy.
    needed : list of Opened
        The libraries outside the system's folders that it needs.
    sha256 : str
        The digest of its bytes.
    """

    def __init__(self, library: Library, needed: list[Opened], sha256: str) -> None:
        self.library, self.needed, self.sha256 = library, needed, sha256


def verified_file(path: str, trust: Trust | None) -> Sealed:
    """Copy a file, and verify the copy by the policy and by `trust`; raises VerifyError."""
    file = seal_file(path)
    policy = active_policy()
    rules = [policy.of_file(file.real_path)] if policy is not None else []
    return _verified(file, [*rules, *([trust] if trust is not None else [])])


def verified_bytes(data: memoryview, trust: Trust | None) -> Sealed:
    """Copy bytes, and verify the copy; raises VerifyError."""
    file = seal_bytes(data, f"<{len(data)} bytes>")
    policy = active_policy()
    rules = [policy.bytes] if policy is not None else []
    return _verified(file, [*rules, *([trust] if trust is not None else [])])


def _verified(file: Sealed, rules: list[Trust]) -> Sealed:
    try:
        for rule in rules:
            rule.verify(file)
    except BaseException:
        os.close(file.descriptor)
        raise
    return file


def open_verified(file: Sealed, trust: Trust | None, depth: int = 0) -> Opened:
    """Open the sealed copy, which was verified, after the libraries that it needs.

    Raises
    ------
    VerifyError
        A needed library is not trusted, or cannot be opened in this way.
    LibraryLoadError
        One of them cannot be loaded.
    """
    try:
        needed = [
            _open_needed(file, name, path, trust, depth) for name, path in _needed(file) if path
        ]
        library = Library(file.name, name=file.path, descriptor=file.descriptor)
    except BaseException:
        os.close(file.descriptor)
        raise
    return Opened(library, needed, file.sha256)


def _open_needed(file: Sealed, name: str, path: str, trust: Trust | None, depth: int) -> Opened:
    if depth == _MAX_DEPTH:
        text = f"{file.path}: libraries that need each other, deeper than {_MAX_DEPTH}"
        raise VerifyError(text, path=file.path, reason="needed")
    found = verified_file(path, trust)
    sonames = ElfFile(found.name).dynamic_names(DT_SONAME)
    if sonames != [os.path.basename(name)]:
        os.close(found.descriptor)
        text = f"{file.path}: needs {name!r}: {path} has SONAME {', '.join(sonames) or 'none'}"
        hint = f"expected {name!r}, since a verified library is found by it; link it with -soname"
        raise VerifyError(f"{text}, {hint}", path=path, reason="needed")
    return open_verified(found, trust, depth + 1)


def _needed(file: Sealed) -> Iterator[tuple[str, str | None]]:
    """Iterate over the names of needed libraries, and the files outside the system's folders."""
    image = ElfFile(file.name)
    folders = [*_folders(file, image)]
    for name in image.dynamic_names(DT_NEEDED):
        if "/" in name:
            text = f"{file.path}: needs {name!r}, expected a name without a folder"
            raise VerifyError(f"{text}; link it with -soname", path=file.path, reason="needed")
        paths = (os.path.join(folder, name) for folder in folders)
        path = next((path for path in paths if os.path.exists(path)), None)
        is_system = path is not None and os.path.realpath(path).startswith(SYSTEM)
        yield name, None if is_system else path


def _folders(file: Sealed, image: ElfFile) -> Iterator[str]:
    """Iterate over the folders that ld.so would search before the system's, in its order."""
    runpath = image.dynamic_names(DT_RUNPATH)
    before = [] if runpath else image.dynamic_names(DT_RPATH)
    variable = os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":")
    origin = os.path.dirname(file.real_path)
    for text in (*before, *([variable] if variable else []), *runpath):
        for folder in text.split(":"):
            for token in ("$ORIGIN", "${ORIGIN}"):
                if token in folder and not origin:
                    continue  # bytes have no folder
                folder = folder.replace(token, origin)
            if "$" in folder:
                if not origin:
                    continue
                place = f"{file.path}: searches {folder!r} for libraries"
                text = f"{place}, expected folders without tokens but $ORIGIN; link it with -rpath"
                raise VerifyError(text, path=file.path, reason="needed")
            yield folder or "."
