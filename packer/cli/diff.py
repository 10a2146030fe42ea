"""``packer diff``: compare two libraries."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from runtime.error import PackerError

from .parser import CommandParser
from .terminal import show, write_error

_SCHEMA = 1
_DIFFERENT, _TROUBLE = 1, 2

_DESCRIPTION = """\
Compare two libraries: functions and signatures, modules and their payloads, symbols, needed
libraries. The libraries are read, not run."""

_EPILOG = """\
examples:
  packer diff old.so new.so
  packer diff old.so new.so --json | jq -c '.differences[] | [.group, .item]'

Exit status, as of diff(1): 0 equal bytes, 1 different, 2 a file cannot be compared."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer diff``."""
    parser = CommandParser("packer diff", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("a", metavar="A", help="a library")
    parser.add_argument("b", metavar="B", help="another library")
    parser.add_json()
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the differences; exit status 1 if there are any, 2 if a file cannot be compared."""
    from ..inspect.diff import diff_libraries, list_differences
    from . import hint

    try:
        found = diff_libraries(arguments.a, arguments.b)
    except PackerError as error:
        write_error(f"packer: {error}{hint(error)}")
        sys.exit(_TROUBLE)
    if arguments.json:
        from .json_text import write_json

        fields = {"schema": _SCHEMA, "a": arguments.a, "b": arguments.b, "same": not found}
        write_json({**fields, "differences": [difference.to_dict() for difference in found]})
    elif found:
        show(list_differences(found, arguments.a, arguments.b))
    if found:
        sys.exit(_DIFFERENT)
