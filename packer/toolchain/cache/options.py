"""The options of a compilation whose effect is known: the others are compiled without the cache.

An option may read a file that no list of dependencies names, or write a second output. So the
cache does not exclude some options by name, but admits options of known forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# Options that take a value, in the same word or the next.
_FOLDERS = ("-isystem", "-iquote", "-idirafter", "-I")
_FORCED = ("-include", "-imacros")
_VALUED = (*_FOLDERS, *_FORCED, "-D", "-U", "-isysroot", "-target")
# These decide where other headers are searched, and parts of the compiler, or what the target is.
_SEARCHING = re.compile(
    r"-(m(?!llvm)[\w=.+-]+|nostd[\w+]+|stdlib=[\w+]+"
    r"|-?target=[\w.-]+|-sysroot=.+|-gcc-toolchain=.+|-gcc-install-dir=.+)"
)
_NATIVE = re.compile(r"-m(arch|cpu|tune)=native")
_HARMLESS = re.compile(
    r"-(O\w*|w|W(?![apl],)[\w=+.-]*|pedantic(-errors)?|std=[\w+:]+|ansi|pipe|pthread|s"
    r"|static[\w-]*|shared[\w-]*|nostartfiles|nodefaultlibs|[lL].+|Wl,.+)"
)
# A value of -f with a slash or dot might be a file.
_CODE = re.compile(r"-f[\w+-]+(=[\w+,-]*)?")
_MAPPED = re.compile(r"-f(file|debug|macro)-prefix-map=.*|-fdebug-compilation-dir=.*")
_WITH_FILES = re.compile(
    r"-f(no-)?(plugin|pass-plugin|profile|auto-profile|cs-profile|branch-prob|test-coverage|coverage"
    r"|dump|save|stack-usage|callgraph|module|implicit-module|prebuilt|opt-info|time|mem|record"
    r"|pch|thinlto|wpa|ltrans|xray|syntax-only|compare-debug|basic-block-sections|proc-stat"
    r"|sanitize-(black|ignore|cov)|randomize-layout|diagnostics-(format|add)|working|verbose|report)"
)
_DEBUG = re.compile(r"-g(?!split|record|toggle)[\w=-]*")
# Then folders may be part of the object in a form that a search of its bytes would not find.
_NAMES_FOLDERS = re.compile(r"-(g(?!0$).*|flto.*|fsanitize.*|f\w+-prefix-map.*|fdebug.*)")


class Options(NamedTuple):
    """The options of one compilation."""

    # Options that decide what the compiler consists of, and which folders it searches by itself.
    searching: tuple[str, ...]
    folders: tuple[str, ...]  # the folders of headers that options name
    forced: tuple[str, ...]  # the names of headers that are read before the source
    is_native: bool  # True if the processor of this machine decides
    names_folders: bool  # True if the object may contain names of folders


def read_options(words: Sequence[str]) -> Options | None:
    """Read the options of a compilation; return None if the effect of one is not known."""
    searching: list[str] = []
    folders: list[str] = []
    forced: list[str] = []
    is_native = names_folders = False
    rest = iter(words)
    for word in rest:
        if name := next((name for name in _VALUED if word.startswith(name)), ""):
            value = word.removeprefix(name) or next(rest, "")
            if not value or (name in _FOLDERS and value.startswith(("-", "="))):
                return None
            if name in _FORCED:
                forced.append(value)
            elif name in _FOLDERS:
                folders.append(value)
            elif name in ("-isysroot", "-target"):
                searching += (name, value)
        elif _SEARCHING.fullmatch(word):
            searching.append(word)
            is_native |= bool(_NATIVE.fullmatch(word))
        elif not _is_known(word):
            return None
        names_folders |= bool(_NAMES_FOLDERS.fullmatch(word))
    return Options(tuple(searching), tuple(folders), tuple(forced), is_native, names_folders)


def _is_known(word: str) -> bool:
    is_code = bool(_CODE.fullmatch(word)) and not _WITH_FILES.match(word)
    return is_code or any(form.fullmatch(word) for form in (_HARMLESS, _DEBUG, _MAPPED))
