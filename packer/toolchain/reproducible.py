"""Options and variables that keep surroundings out of what compilers make.

Folders, the time and chance would else come in: through debug information, __FILE__, __DATE__ and
names that GCC draws for LTO. What a date is asked for is SOURCE_DATE_EPOCH, or 0 where it is not
set, so that the same input gives the same bytes at any time.
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
    name: str, folders: Mapping[Path, str], options: Sequence[str], *, is_clang: bool
) -> list[str]:
    """Options for one compilation.

    Parameters
    ----------
    name : str
        What tells it from the others of a library.
    folders : mapping of Path to str
        Under which name each folder stands. The last one, in which the compiler starts, may lie
        in one of the others.
    options : sequence of str
        The other options; folders that they name for headers stand as ``"."``.
    is_clang : bool
        Whether the compiler is clang: the folder in which it starts has an option of its own,
        since some of its releases take the first map that fits, where GCC takes the last one.

    Raises
    ------
    ExportError
        As for `source_date_epoch`.
    """
    # "Thu Jan  1 00:00:00 1970", as C has it, in any locale
    date = time.asctime(time.gmtime(source_date_epoch()))
    macros = {"DATE": f"{date[4:10]} {date[20:]}", "TIME": date[11:19], "TIMESTAMP": date}
    return [
        *prefix_maps(dict.fromkeys(_header_folders(options), "."), is_clang=is_clang),
        *prefix_maps(folders, is_clang=is_clang),
        *(["-fdebug-compilation-dir=."] if is_clang else []),
        f"-frandom-seed={name}",
        "-Wno-builtin-macro-redefined",
        *(f'-D__{macro}__="{text}"' for macro, text in macros.items()),
    ]


def prefix_maps(folders: Mapping[Path, str], *, is_clang: bool) -> list[str]:
    """Options that have folders stand under other names; clang's end such a name at a ``=``."""
    return [
        f"-ffile-prefix-map={folder}={name}"
        for folder, name in folders.items()
        if not (is_clang and "=" in str(folder))
    ]


def _header_folders(options: Sequence[str]) -> Iterator[Path]:
    """The absolute folders that options name for headers, joined to the option or behind it."""
    for index, option in enumerate(options):
        for flag in ("-I", "-iquote", "-isystem", "-idirafter"):
            folder = option.removeprefix(flag)
            if option == flag and index + 1 < len(options):
                folder = options[index + 1]
            if option.startswith(flag) and os.path.isabs(folder):
                yield Path(folder)


def environment(of: Mapping[str, str]) -> dict[str, str]:
    """What programs find set: the C locale, and a date for those that insist on one."""
    return {_EPOCH: "0", **of, "LC_ALL": "C"}


def source_date_epoch() -> int:
    """The date that is to stand where there must be one: seconds since 1970; 0 by default.

    Raises
    ------
    ExportError
        SOURCE_DATE_EPOCH is no number of seconds, or of more than the year 9999.
    """
    text = os.environ.get(_EPOCH) or "0"
    if not text.isdecimal() or int(text) > _LATEST:
        raise ExportError(f"{_EPOCH}={text!r}, expected seconds since 1970")
    return int(text)
