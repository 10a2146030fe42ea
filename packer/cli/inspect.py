"""``packer inspect``: show what is in a library without running it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = "Show the symbols, the tree and the functions of a library. Nothing of it is run."

_EPILOG = """\
examples:
  packer inspect model.so
  packer inspect model.so --json | jq .
  packer inspect -- -strange.so"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer inspect``."""
    parser = CommandParser("packer inspect", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the file")
    parser.add_argument("--json", action="store_true", help="for programs, as JSON")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the report.

    Raises
    ------
    PackerError
        The file is no library.
    SystemExit
        It is one, but something in it is wrong; exit status 1.
    """
    from ..inspect import inspect_library, render

    report = inspect_library(arguments.library)
    if arguments.json:
        import json

        write(json.dumps(report.to_dict(), indent=2))
    else:
        write(render(report))
    if report.problems:
        sys.exit(1)  # the report says what they are
