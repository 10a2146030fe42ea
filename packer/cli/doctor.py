"""``packer doctor``: report which compilers, drivers and packages this machine has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .findings import report
from .parser import CommandParser

_DESCRIPTION = """\
Report which tools this machine has for packing and loading: compilers, linkers, LLVM and its
targets, OpenCL and CUDA drivers and devices, loaders; and how to install the missing ones."""

_EPILOG = """\
examples:
  packer doctor
  packer doctor --json

Exit status: 1 if a tool is missing that an export of host code needs, otherwise 0."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer doctor``."""
    parser = CommandParser("packer doctor", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_json()
    return parser.parse_args(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the findings; exit status 1 if one of them failed."""
    from ..inspect.doctor import examine_machine

    report(examine_machine(), arguments.json)
