"""``packer extract``: write the payloads of a library as files, with a packer.toml."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Write every payload of a library as a file, with a packer.toml that packs them again. The library is
read, not run. Its host code cannot be restored as source: an empty host.c replaces it."""

_EPILOG = """\
examples:
  packer extract model.so -o model
  packer extract model.so -o model --force
  cd model && packer export again.so

All files are written directly into the folder. If packer.toml cannot describe a module, modules.py
makes it: `packer export` runs that file."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer extract``."""
    parser = CommandParser("packer extract", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    text = "the folder to write; made if missing"
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help=text)
    parser.add_argument("--force", action="store_true", help="replace existing files")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Extract, and print each file with its size."""
    from ..inspect.extract import extract_library

    for path in extract_library(arguments.library, arguments.output, force=arguments.force):
        write(f"{shown_path(path)}: {path.stat().st_size:,} bytes")
