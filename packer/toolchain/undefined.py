"""The undefined symbols of a new library: who provides each, and which ones are refused.

A symbol that a library of the link defines has a version, where that library has versions; so few
symbols are left to look for. A note lists the ones that the process provides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime import _core
from runtime._core import ElfFile

from ..files.text import some_of
from ..target import Target
from .build import current_build

ALLOW = "--allow-undefined"
_DT_NEEDED = 1
# Each compiler's own libraries, which the loader finds with the C library.
STANDARD = re.compile(
    r"(lib(c|m|dl|rt|pthread|gcc_s|gomp|atomic|stdc\+\+)|ld-linux[\w-]*)\.so\.\d+|libc\.so"
)
# Symbols that a process has besides the symbols of the needed libraries.
_PROVIDED = {
    "TVM": re.compile(r"(TVM[A-Z]|DSO[A-Z]|_Z[A-Z]*N?K?3tvm)\w+"),
    "Python": re.compile(r"_*Py[A-Za-z0-9]*_\w+"),
    "a sanitizer or profiler": re.compile(
        r"__((a|t|m|l|hwa|df|ub)san|memprof|sanitizer|interceptor|gcov|llvm_(profile|gcov)|xray)_\w+"
        r"|llvm_(gcda|gcov)_\w+"
    ),
}


class Linked(NamedTuple):
    """A link that ended, for the search of what its result leaves undefined."""

    output: Path  # the path that the library gets
    target: Target
    options: Sequence[str]  # the options of the link
    objects: Mapping[Path, str]  # the objects and archives, and what messages call them
    allowed: Collection[str]  # the patterns of ``--allow-undefined``


def split_allowed(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take ``--allow-undefined[=PATTERN]`` out of options; return the others and the patterns."""
    allowed = [word for word in options if word.partition("=")[0] == ALLOW]
    patterns = [word.partition("=")[2] or "*" for word in allowed]
    return [word for word in options if word not in allowed], patterns


def allowing(patterns: Sequence[str]) -> list[str]:
    """Return the options that allow the undefined symbols of some patterns."""
    return [f"{ALLOW}={pattern}" for pattern in patterns]


def check_undefined(made: object, linked: Linked) -> None:
    """Refuse a library with symbols that nothing known provides; note what the process must have.

    Raises ToolchainError if there are any; the message has each symbol, the function that needs it,
    and the library that defines it.
    """
    if not isinstance(made, ElfFile):
        return
    names = made.unbound()
    needed = [name for name in made.dynamic_names(_DT_NEEDED) if not STANDARD.fullmatch(name)]
    for provider, pattern in _PROVIDED.items():
        found = [name for name in names if pattern.fullmatch(name)]
        names = [name for name in names if name not in found]
        _note_provided(provider, found)
    if names or needed:
        from .unbound import Unbound  # slow to import, and seldom needed

        Unbound(made.path, linked).check(names)


def _note_provided(provider: str, names: Sequence[str]) -> None:
    if not names:
        return
    text = f"the process that loads it must provide symbols of {provider}: {some_of(names)}"
    if all(map(_core.is_provided, names)):
        text += "; runtime.load does"
    note(text)


def note(text: str) -> None:
    """Show a note, where the warnings of compilers are shown."""
    current_build().show(f"packer: note: {text}")
