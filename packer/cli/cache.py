"""``packer cache``: show the size of the object cache, or clear it."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence

from runtime.error import PackerError

from ..files.text import shown_path
from ..toolchain.cache.folder import LIMIT_NBYTES, Folder, cache_path
from .parser import CommandParser
from .terminal import size_text, write

_DESCRIPTION = """\
Show where exports keep compiled objects, how many entries there are, and their size. An export
finds an object there if its source, options, headers and compiler have not changed. The entries
that were not used for the longest time are removed first."""

_EPILOG = """\
examples:
  packer cache
  packer cache --clear
  PACKER_CACHE=off packer export     # without the cache
  PACKER_CACHE=/scratch/objects packer export

Exit status: 1 if exports cannot use the folder, for example because others can write to it."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer cache``."""
    parser = CommandParser("packer cache", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--clear", action="store_true", help="remove all entries")
    parser.add_json()
    return parser.parse_args(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the folder, the entries and their size, after they were removed if that is asked."""
    path = cache_path()
    sizes = [] if path is None else _sizes(path, clear=arguments.clear)
    if arguments.json:
        from .json_text import write_json

        limit = LIMIT_NBYTES
        row = {"path": path, "entries": len(sizes), "nbytes": sum(sizes), "limit_nbytes": limit}
        write_json(row)
    elif path is None:
        write("off: PACKER_CACHE is set")
    else:
        entries = f"{len(sizes)} {'entry' if len(sizes) == 1 else 'entries'}"
        size = f"{size_text(sum(sizes))} of at most {size_text(LIMIT_NBYTES)}"
        write(f"{shown_path(path)}: {entries}, {size}")


def _sizes(path: str, *, clear: bool) -> list[int]:
    """Return the sizes of the entries.

    Raises PackerError if the folder cannot be used.
    """
    if not os.path.lexists(path):
        return []
    try:
        with contextlib.closing(Folder(path)) as folder:
            if clear:
                folder.clear()
            return [*folder.entries()]
    except OSError as error:
        text = f"{error.strerror or error}; name another folder in PACKER_CACHE"
        raise PackerError(f"{shown_path(path)}: exports do not use it: {text}") from error
