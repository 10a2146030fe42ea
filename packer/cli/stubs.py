"""``packer stubs``: write the types of a library's functions for type checkers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Write a stub (.pyi) of one library for type checkers and editors: each function with its parameters,
results and documentation, and a class of the tree, whose functions and weights have names that are
checked. The library is read, not run."""

_EPILOG = """\
examples:
  packer stubs model.so > model.pyi
  packer stubs model.so -o model.pyi

in a program, which mypy then checks:
  from typing import TYPE_CHECKING, cast
  if TYPE_CHECKING:
      from model import Model
  model = cast("Model", runtime.load("model.so"))"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer stubs``."""
    parser = CommandParser("packer stubs", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    parser.add_argument("-o", "--output", metavar="FILE", help="the stub; by default, stdout")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Write the stub to the file, or to stdout."""
    from ..packaging.stubs import stub_of, write_stub

    if arguments.output is not None:
        write_stub(arguments.library, arguments.output)
    else:
        write(stub_of(arguments.library).rstrip())
