"""Options and variables that make the output of compilers reproducible.

Without them folders, the time and random numbers would be part of the output: in debug information,
__FILE__, __DATE__ and GCC's names for LTO. Every date is SOURCE_DATE_EPOCH, by default 0, so that
the same input gives the same bytes at any time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from runtime.error import ExportError

_EPOCH = "SOURCE_DATE_EPOCH"
_LATEST = 253402300799  # the last second that has four digits for its year


def compile_options(
    name: str, cwd: Path, prefixes: Mapping[str, str], options: Sequence[str], *, is_clang: bool
) -> list[str]:
    """Return the options for one compilation, which `name` identifies in the library.

    The beginnings of paths in `prefixes` are replaced, and folders of headers in `options` by
    ``"."``. Some releases of clang apply the first matching map, GCC the last one. The compiler
    starts in `cwd`, which may be inside one of the others or contain them: it is replaced in debug
    information only, and before all others. Raises ExportError: as for `source_date_epoch`.
    """
    # "Thu Jan  1 00:00:00 1970", as C has it, in any locale
    date = time.asctime(time.gmtime(source_date_epoch()))
    macros = {"DATE": f"{date[4:10]} {date[20:]}", "TIME": date[11:19], "TIMESTAMP": date}
    return [
        "-fdebug-compilation-dir=." if is_clang else f"-fdebug-prefix-map={cwd}=.",
        *prefix_maps(dict.fromkeys(_header_folders(options), "."), is_clang=is_clang),
        *prefix_maps(prefixes, is_clang=is_clang),
        f"-frandom-seed={name}",
        "-Wno-builtin-macro-redefined",
        *(f'-D__{macro}__="{text}"' for macro, text in macros.items()),
    ]


def prefix_maps(prefixes: Mapping[str, str], *, is_clang: bool) -> list[str]:
    """Return the options that replace beginnings of paths; for clang a ``=`` ends such a one."""
    return [
        f"-ffile-prefix-map={prefix}={name}"
        for prefix, name in prefixes.items()
        if not (is_clang and "=" in prefix)
    ]


def _header_folders(options: Sequence[str]) -> Iterator[str]:
    """Yield the absolute folders that options name for headers, in the same word or the next."""
    for index, option in enumerate(options):
        for flag in ("-I", "-iquote", "-isystem", "-idirafter"):
            folder = option.removeprefix(flag)
            if option == flag and index + 1 < len(options):
                folder = options[index + 1]
            if option.startswith(flag) and os.path.isabs(folder):
                yield folder


def environment(of: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of programs, with the C locale, and a date if they need one."""
    return {_EPOCH: "0", **of, "LC_ALL": "C"}


def source_date_epoch() -> int:
    """Return the date of outputs in seconds since 1970; 0 by default.

    Raises ExportError if SOURCE_DATE_EPOCH is not a number of seconds, or after the year 9999.
    """
    text = os.environ.get(_EPOCH) or "0"
    if not text.isdecimal() or int(text) > _LATEST:
        raise ExportError(f"{_EPOCH}={text!r}, expected seconds since 1970")
    return int(text)
