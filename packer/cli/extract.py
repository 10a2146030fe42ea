"""``packer extract``: write a library's payloads as files, and a packer.toml."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Write every payload of a library as the file it was, with the packer.toml that packs them again.
Nothing of the library is run. Its host code cannot come back as source; an empty host.c stands in
its place."""

_EPILOG = """\
examples:
  packer extract model.so -o model
  packer extract model.so -o model --force
  cd model && packer export again.so

All files lie directly in the folder, whatever names the library has. modules.py, where there is
one, makes the modules that packer.toml has no words for: `packer export` runs it."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer extract``."""
    parser = CommandParser("packer extract", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the file")
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="made if need be")
    parser.add_argument("--force", action="store_true", help="replace files that are there already")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Extract, and say what was written.

    Raises
    ------
    PackerError
        The library carries nothing, or a file cannot be written.
    """
    from ..files.text import shown_path
    from ..inspect.extract import extract_library

    for path in extract_library(arguments.library, arguments.output, force=arguments.force):
        write(f"{shown_path(path)}: {path.stat().st_size:,} bytes")
