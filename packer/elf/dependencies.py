"""The libraries that a library needs, directly and indirectly, found as by the dynamic loader."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.error import LibraryLoadError

from .dynamic import read_dynamic
from .library_search import Requester, find_library, python_executable
from .linkage import version_numbers

if TYPE_CHECKING:
    from .dynamic import Dynamic
    from .linkage import Linkage

_MAX_LIBRARIES = 2048
Find = Callable[[str, Requester], "str | None"]


@dataclass(slots=True)
class Dependencies:
    """The libraries that a load of one would load too, in the order of the dynamic loader."""

    # The libraries needed by the library itself, and their files.
    direct: dict[str, str | None] = field(default_factory=dict)
    # The libraries that are not found, on any level, and the first library that needs each.
    missing: dict[str, str] = field(default_factory=dict)
    # The symbol versions that the found library does not define.
    missing_versions: list[tuple[str, str, str]] = field(default_factory=list)
    # The newest glibc that any of them needs, except glibc's own libraries.
    glibc: tuple[str, str] | None = None
    _found: dict[str, Dynamic | None] = field(default_factory=dict)

    def defined_among(self, names: Set[str]) -> set[str]:
        """Return the names that the found libraries define."""
        return _defined_among(names, self._found.values())

    def symbol_names(self) -> list[str]:
        """Return the names of the symbols that the found libraries define."""
        libraries = filter(None, self._found.values())
        return [s.name for dynamic in libraries for s in dynamic.symbols if s.defined]


def defined_by_this_process(names: Set[str]) -> set[str]:
    """Return the names that the running program or its libraries define; a load finds them too."""
    return _defined_among(names, _of_this_process()) if names else set()


def _defined_among(names: Set[str], libraries: Iterable[Dynamic | None]) -> set[str]:
    left = set(names)
    for dynamic in libraries:
        if left and dynamic is not None:
            left -= {s.name for s in dynamic.symbols if s.defined and s.name in left}
    return set(names) - left


def resolve_dependencies(
    path: str | os.PathLike[str], linkage: Linkage, find: Find = find_library
) -> Dependencies:
    """Find all libraries that a library needs; `find` returns the file of one."""
    process = _requester_of_this_process()
    name = os.fspath(path)
    return _resolve(name, linkage, process, find)


def _resolve(
    path: str, linkage: Linkage, process: Requester | None, find: Find = find_library
) -> Dependencies:
    result = Dependencies()
    pending = deque([(path, linkage, process)])
    while pending and len(result._found) < _MAX_LIBRARIES:
        asking, wants, parent = pending.popleft()
        requester = _requester(asking, wants, parent)
        for name in wants.needed:
            if name not in result._found:
                found = find(name, requester)
                dynamic = result._found[name] = _read(found)
                if dynamic is None:
                    result.missing[name] = os.path.basename(asking)
                elif found is not None:
                    pending.append((found, dynamic.linkage(), requester))
                    _note_glibc(result, name, dynamic)
            if asking == path:
                direct = result._found[name]
                result.direct[name] = None if direct is None else direct.image.path
        _compare_versions(result, os.path.basename(asking), wants)
    return result


def _note_glibc(result: Dependencies, name: str, dynamic: Dynamic) -> None:
    needed = dynamic.linkage().glibc
    is_glibc = any(version.startswith("GLIBC_") for version in dynamic.defined_versions)
    if needed is None or is_glibc:
        return
    if result.glibc is None or version_numbers(needed) > version_numbers(result.glibc[1]):
        result.glibc = (os.path.basename(name), needed)


def _compare_versions(result: Dependencies, asking: str, wants: Linkage) -> None:
    for need in wants.version_needs:
        dynamic = result._found.get(need.library)
        if dynamic is not None:
            for version in need.versions:
                if version not in dynamic.defined_versions:
                    result.missing_versions.append((need.library, version, asking))


def _requester(path: str, linkage: Linkage, parent: Requester | None) -> Requester:
    folder = os.path.dirname(os.path.abspath(path))
    return Requester(folder, linkage.rpath, linkage.runpath, parent)


def _read(path: str | None) -> Dynamic | None:
    if path is None:
        return None
    try:
        return read_dynamic(path)
    except LibraryLoadError:
        return None


def _requester_of_this_process() -> Requester | None:
    """Return the running program, whose DT_RPATH applies to what it loads."""
    program = _read(python_executable())
    return None if program is None else _requester(python_executable(), program.linkage(), None)


def _of_this_process() -> list[Dynamic | None]:
    """Return the program and its libraries, the global scope of what it loads."""
    path = python_executable()
    program = _read(path)
    if program is None:
        return []
    return [program, *_resolve(path, program.linkage(), None)._found.values()]
