"""``packer check``: report if a library loads on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .findings import report
from .parser import CommandParser

_DESCRIPTION = """\
Report if a library loads on this machine: processor, glibc, needed libraries, loaders, drivers,
device architectures. The library is read, not loaded. Failures and warnings say how to fix them."""

_EPILOG = """\
examples:
  packer check model.so
  packer check model.so --json | jq '.findings[] | select(.status != "pass")'
  packer check model.so && python serve.py
  packer check model.so --without-python

Exit status: 0 if the library loads, even with warnings; 1 if it does not, or if with
--without-python a part of it needs Python."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer check``."""
    parser = CommandParser("packer check", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    parser.add_argument(
        "--without-python",
        action="store_true",
        help="also report what of the library a program with libdso cannot use",
    )
    parser.add_json()
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the findings; exit status 1 if one of them failed."""
    from ..inspect.check import check_library

    findings = check_library(arguments.library)
    if arguments.without_python:
        from ..inspect.check_python import check_without_python

        findings += check_without_python(arguments.library)
    report(findings, arguments.json, path=arguments.library)
