"""``packer doctor``: what this machine has for packing and loading."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .findings import report
from .parser import CommandParser

_DESCRIPTION = """\
Show what this machine has for packing and loading: compilers, linkers, LLVM and its targets,
OpenCL and CUDA drivers and devices, loaders; and how to get what is missing."""

_EPILOG = """\
examples:
  packer doctor
  packer doctor --json

Exit status: 0, or 1 where something is missing that an export of host code needs."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer doctor``."""
    parser = CommandParser("packer doctor", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--json", action="store_true", help="for programs, as JSON")
    return parser.parse_args(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print what was found.

    Raises
    ------
    SystemExit
        Something is missing that an export of host code needs; exit status 1.
    """
    from ..inspect.doctor import examine_machine

    report(examine_machine(), arguments.json)
