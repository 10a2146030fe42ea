"""Which compiler a command runs: its files, and where it searches headers."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..process import run_all
from .folder import Folder, digest_of
from .inputs import column

# Other programs of these names, such as ccache or a script, may run any compiler.
_KNOWN = re.compile(r"(.+-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(-[\d.]+)?")
_ELF = b"\x7fELF"
# Variables that change what gcc or clang, its assembler or its dynamic loader does ...
_READ = re.compile(
    r"(GCC|CCC|CLANG|LD)_\w+|C(PLUS_INCLUDE_|_INCLUDE_)?PATH|COMPILER_PATH|GNUTARGET"
    r"|SOURCE_DATE_EPOCH"
)
# ... or that make it write further files.
_WRITTEN = {"DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CC_PRINT_OPTIONS", "CC_PRINT_HEADERS"}
_IGNORED = re.compile(r'^ignoring (?:nonexistent|duplicate) directory "(.*)"$', re.MULTILINE)
_SEARCH = re.compile(r"^#include .*search starts here:\n((?: .*\n)*)", re.MULTILINE)
_PROGRAM = re.compile(r'^ "?(/[^"\s]+)', re.MULTILINE)
_FILE = re.compile(r"^(?:Reading specs from|Configuration file:) (/.*)$", re.MULTILINE)


class Compiler(NamedTuple):
    """A compiler with the options that decide what it searches."""

    identity: str  # differs if any of its programs does
    folders: tuple[str, ...]  # where it searches headers by itself, also folders that do not exist


def variables() -> list[str] | None:
    """Return the environment as compilers see it; None if they write further files."""
    if _WRITTEN & os.environ.keys():
        return None
    return sorted(f"{key}={value}" for key, value in os.environ.items() if _READ.fullmatch(key))


def find_out(
    command: Sequence[str],
    searching: Sequence[str],
    *,
    is_native: bool,
    start: Path,
    folder: Folder,
) -> Compiler | None:
    """Find out which compiler a command runs; return None if the program is not a known one.

    The options for the language are at the end of `command`; the options `searching` decide what it
    searches. If one of them names this machine's processor (`is_native`), the answer is not kept in
    `folder`. The compiler starts in `start`.
    """
    driver = _stated(command[0])
    found = variables()
    if driver is None or found is None or not _is_known(command[0]):
        return None
    surroundings = [driver, os.environ.get("PATH", ""), *found, *command, "", *searching]
    key = digest_of(b"compiler", *map(os.fsencode, surroundings))
    kept = None if is_native else folder.read(key)
    text = os.fsdecode(kept) if kept else _describe(command, searching, start)
    if text is None:
        return None
    programs = [_stated(path) for path in column(text, "program")]
    if None in programs:
        return None
    if not kept and not is_native:
        folder.write(key, os.fsencode(text))
    said = text if is_native else ""
    parts = (command[0], driver, *programs, *found, said)  # clang takes its target from its name
    identity = digest_of(*(os.fsencode(part or "") for part in parts))
    return Compiler(identity, tuple(column(text, "folder")))


def _is_known(path: str) -> bool:
    resolved = os.path.realpath(path)
    try:
        with open(resolved, "rb") as file:
            head = file.read(len(_ELF))
    except OSError:
        return False
    return head == _ELF and bool(_KNOWN.fullmatch(os.path.basename(resolved)))


def _describe(command: Sequence[str], searching: Sequence[str], start: Path) -> str | None:
    """Ask a compiler for its programs and folders, and write down the answer."""
    driver, *language = command
    commands = (
        [driver, *searching, "-v", "-fsyntax-only", *language, os.devnull],
        [driver, *searching, "-print-prog-name=as"],
    )
    asked, assembler = (*run_all(commands, cwd=start), None, None)[:2]
    if asked is None or assembler is None:  # the first one failed, so the second was not started
        return None
    searched = [
        line.strip() for part in _SEARCH.findall(asked.output) for line in part.splitlines()
    ]
    programs = [path for path in _PROGRAM.findall(asked.output) if os.path.isfile(path)]
    if asked.returncode or assembler.returncode or not searched or not programs:
        return None
    folders = [*searched, *_IGNORED.findall(asked.output)]
    lines = [f"program {path}" for path in (*programs, *_FILE.findall(asked.output))]
    lines += [f"program {path}" for path in [assembler.output.strip()] if shutil.which(path)]
    lines += [f"folder {path.removesuffix(' (framework directory)')}" for path in folders]
    lines += [f"says {line}" for line in asked.output.splitlines() if line.startswith(" ")]
    return "\n".join(dict.fromkeys(lines))


def _stated(program: str) -> str | None:
    """Return the resolved path of a program, with the size and the time of its file."""
    path = program if os.path.isabs(program) else shutil.which(program)
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return f"{os.path.realpath(path)} {found.st_size} {found.st_mtime_ns}"
