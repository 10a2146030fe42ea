"""Where the linker of a target searches libraries, and which of them define a symbol."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from runtime.error import ExportError, ToolchainError

from ..elf.archive import read_index
from ..elf.dynamic import read_dynamic
from ..elf.library_search import Requester, find_library
from ..target import Target, find_target, native_triple
from .build import current_build
from .compiler import is_zig
from .cross_search import find_cross_compiler
from .cuda import library_folders, run_time_of
from .process import run

_LISTED = re.compile(r"^libraries: =(.*)$", re.MULTILINE)
# The files that -lNAME finds, then libraries without such a file.
_KINDS = tuple(
    map(re.compile, (r"lib(?P<name>.+)\.so", r"lib(?P<name>.+)\.a", r"lib.+\.so(?P<name>)\.\d+"))
)
_MUSL_NAME = "libc.so"  # the name of the file is that of musl's loader


class SearchPath:
    """The search of libraries for a link with some options.

    `is_native` is True if the loader of this machine will search them.
    """

    def __init__(self, target: Target, options: Sequence[str]) -> None:
        self.target = target
        self.is_native = target.is_like(find_target(native_triple()))
        self._options = options

    @cached_property
    def folders(self) -> list[str]:
        """The folders that the linker searches: the options' folders, then the compiler's."""
        start = current_build().folder or Path("/")
        given = [str(start / folder) for folder in _given(self._options)]
        folders = map(os.path.normpath, (*given, *_folders_of_compiler(self.target)))
        return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]

    def find(self, name: str, requester: Requester) -> str | None:
        """Find a needed library: as the loader does, or else as the linker."""
        found = find_library(name, requester) if self.is_native else None
        return found or self.find_at_link(name)

    def find_at_link(self, name: str) -> str | None:
        """Find a needed library where the linker searches; musl's is its loader."""
        loader = f"/lib/ld-musl-{self.target.machine.name}.so.1"
        paths = [loader] if name == _MUSL_NAME else []
        paths += [os.path.join(folder, os.path.basename(name)) for folder in self.folders]
        return next((path for path in paths if _is_for(path, self.target)), None)

    def archives(self) -> Iterator[Path]:
        """Yield the archives that options -lNAME may find."""
        names = [word[2:] for word in self._options if word.startswith("-l")]
        files = [name[1:] if name.startswith(":") else f"lib{name}.a" for name in names]
        for path in (Path(folder, file) for file in files for folder in self.folders):
            if path.suffix == ".a" and path.is_file():
                yield path

    def defining(self, names: Collection[str]) -> dict[str, str]:
        """Return, for some symbols, the options that link a library which defines each."""
        found: dict[str, str] = {}
        self._search(self.folders, "", names, found)
        if any(map(run_time_of, names)) and self.is_native:
            for folder in map(str, library_folders()):
                self._search([folder], f"-L{folder} ", names, found)
        return found

    def _search(
        self, folders: Sequence[str], before: str, names: Collection[str], found: dict[str, str]
    ) -> None:
        for kind in _KINDS:
            for file in self._files(folders, kind):
                left = [name for name in names if name not in found]
                if not left:
                    return
                match = kind.fullmatch(file.name)
                option = f"-l{match['name']}" if match and match["name"] else f"-l:{file.name}"
                found.update(dict.fromkeys(_defined(file, left), before + option))

    def _files(self, folders: Sequence[str], kind: re.Pattern[str]) -> Iterator[Path]:
        for folder in folders:
            for file in sorted(Path(folder).iterdir()):
                if kind.fullmatch(file.name) and _is_for(file, self.target):
                    yield file


def _given(options: Sequence[str]) -> Iterator[str]:
    for word, following in zip(options, [*options[1:], ""], strict=False):
        if word == "-L":
            yield following
        elif word.startswith("-L"):
            yield word[2:]
        elif os.path.isabs(word) and ".so" in os.path.basename(word):
            yield os.path.dirname(word)


def _folders_of_compiler(target: Target) -> list[str]:
    try:
        driver = find_cross_compiler(target, "link")
    except (ToolchainError, ExportError):
        return []
    if is_zig(driver):  # its C library has no folder
        return []
    said = run([*driver, "-print-search-dirs"], cwd=Path("/")).output
    library = run([*driver, "-print-file-name=libc.so.6"], cwd=Path("/")).output.strip()
    found = _LISTED.search(said)
    return [*(found[1].split(":") if found else []), os.path.dirname(library) or "/"]


def _is_for(path: str | Path, target: Target) -> bool:
    """Return True for a library, or an archive, of the target's machine."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        head = file.read(20)
        is_elf = head.startswith(b"\x7fELF\x02")
        machine = int.from_bytes(head[18:20], "little")
        return head.startswith(b"!<arch>") or (is_elf and machine == target.machine.e_machine)
    return False


def _defined(path: Path, names: Sequence[str]) -> list[str]:
    """Return the given names that a library, or the index of an archive, defines."""
    try:
        if path.suffix == ".a":
            index = read_index(path)
            return [name for name in names if name in index]
        symbols = read_dynamic(path).symbols
    except (OSError, ValueError):  # the errors of damaged files are among them
        return []
    return [name for name in names if symbols.find(name)]
