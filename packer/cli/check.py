"""``packer check``: say whether a library would load here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .findings import report
from .parser import CommandParser

_DESCRIPTION = """\
Say whether a library would load here: machine, glibc, needed libraries, loaders, drivers, device
architectures. It is read, not loaded; what does not pass says what to do."""

_EPILOG = """\
examples:
  packer check model.so
  packer check model.so --json | jq '.findings[] | select(.status != "pass")'
  packer check model.so && python serve.py

Exit status: 0 where it would load, with warnings or without; 1 where it would not."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer check``."""
    parser = CommandParser("packer check", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the file")
    parser.add_argument("--json", action="store_true", help="for programs, as JSON")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print what was found.

    Raises
    ------
    PackerError
        The file is no library.
    SystemExit
        It would not load; exit status 1.
    """
    from ..inspect.check import check_library

    findings = check_library(arguments.library)
    report(findings, arguments.json, path=arguments.library)
