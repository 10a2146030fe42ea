"""``packer inspect``: show the contents of a library without running it."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from runtime.error import LibraryLoadError

from ..files.text import path_error, shown_path
from .parser import CommandParser
from .terminal import show, size_text, write, write_error

if TYPE_CHECKING:
    from ..elf.symbol_table import Symbol
    from ..inspect import LibraryReport
    from ..inspect.drawing import Line

_DESCRIPTION = """\
Show the symbols, the tree and the functions of a library; or the kernels of device code, or the
tensors of weights. The file is read, not run.

Without an option: an overview of one screen."""

_EPILOG = """\
examples:
  packer inspect model.so
  packer inspect model.so --symbols --defined --sort size
  packer inspect model.so --symbols --dynamic --filter __tvm_ffi_
  packer inspect model.so --blob --size
  packer inspect model.so --json | jq .linkage.needed
  packer inspect model.so --html model.html
  packer inspect kernels.ptx       # also .cubin .fatbin .cl .spv .clbin .hsaco
  packer inspect model.safetensors # also .params
  packer inspect -- -strange.so

Exit status: 1 if the report lists problems of the library, otherwise 0."""

_TABLES = ("dynamic", "static")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer inspect``."""
    parser = CommandParser("packer inspect", description=_DESCRIPTION, epilog=_EPILOG)
    text = "the library, or a file of device code or weights"
    parser.add_argument("library", metavar="FILE", help=text)
    parser.add_json()
    text = "write a page for a browser, with everything"
    parser.add_argument("--html", metavar="FILE", help=text)
    parts = parser.add_argument_group("lists, one or more")
    for option, text in (
        ("--symbols", "the symbols, with their meaning"),
        ("--blob", "the entries of the blob, with their fields"),
        ("--size", "the sizes of segments, sections and entries"),
    ):
        parts.add_argument(option, action="store_true", help=text)
    _add_selection(parser)
    arguments = parser.parse_paths(argv)
    if not (arguments.symbols or arguments.json) and _selects(arguments):
        parser.error("the selection needs --symbols or --json")
    if arguments.regex is not None:
        try:
            arguments.regex = re.compile(arguments.regex)
        except re.error as error:
            parser.error(f"argument --regex: {error}")
    return arguments


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Disable the cyclic collector: it would traverse a report of 65,000 modules for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_collector()
def run(arguments: argparse.Namespace) -> None:
    """Print the report; exit status 1 if it lists problems."""
    from ..inspect.standalone_file import is_standalone_file

    if is_standalone_file(arguments.library):
        _show_file(arguments)
        return
    try:
        report = _inspect(arguments)
    except LibraryLoadError as error:
        if not _shows_link_command(error, arguments):
            raise
        return
    if arguments.json:
        from ..inspect.report import to_plain
        from .json_text import write_json

        write_json(_fields(report, arguments), to_plain)
    else:
        show(_lines(report, arguments))
    if arguments.html is not None:  # to stderr, since stdout may be JSON
        nbytes = os.path.getsize(arguments.html)
        write_error(f"{shown_path(arguments.html)}: page written, {size_text(nbytes)}")
    if report.problems:
        sys.exit(1)


def _shows_link_command(error: LibraryLoadError, arguments: argparse.Namespace) -> bool:
    """Print how to make a library of an object, an archive or a tar; return False for others."""
    wants = arguments.json or arguments.symbols or arguments.blob or arguments.size
    if wants or arguments.html is not None or "link it first with packer link" not in str(error):
        return False
    path = arguments.library
    command = f"packer link {shlex.quote(path)} -o model.so"
    size = f"{os.path.getsize(path):,} bytes"
    write(f"{shown_path(path)}: {size}, the input of a link; `{command}` makes a library of it")
    return True


def _show_file(arguments: argparse.Namespace) -> None:
    from ..inspect.standalone_file import inspect_file, list_file

    given = [f"--{name}" for name in ("html", "symbols", "blob", "size") if vars(arguments)[name]]
    if given:
        text = f"{given[0]} is for libraries; without it, or with --json, this file is shown"
        raise path_error(arguments.library, text)
    report = inspect_file(arguments.library)
    if arguments.json:
        from ..inspect.report import to_plain
        from .json_text import write_json

        write_json(report.fields(), to_plain)
    else:
        show(list_file(report))


def _inspect(arguments: argparse.Namespace) -> LibraryReport:
    if arguments.html is not None:
        from ..inspect.page import write_report

        return write_report(arguments.library, arguments.html)
    from ..inspect import inspect_library

    return inspect_library(arguments.library)


def _add_selection(parser: CommandParser) -> None:
    selection = parser.add_argument_group("selection of symbols, with --symbols or --json")
    table = selection.add_mutually_exclusive_group()
    for name in _TABLES:
        text = f"only the {name} table"
        table.add_argument(f"--{name}", dest="table", action="store_const", const=name, help=text)
    where = selection.add_mutually_exclusive_group()
    for name, value in (("defined", True), ("undefined", False)):
        text = f"only {name} symbols"
        where.add_argument(f"--{name}", dest="is", action="store_const", const=value, help=text)
    selection.add_argument("--filter", metavar="TEXT", help="only names that contain this text")
    text = "only names in which this regular expression matches"
    selection.add_argument("--regex", metavar="PATTERN", help=text)
    orders, text = ("file", "name", "size", "address"), "the order; default: file"
    selection.add_argument("--sort", choices=orders, default="file", help=text)


def _selects(arguments: argparse.Namespace) -> bool:
    chosen = (arguments.table, vars(arguments)["is"], arguments.filter, arguments.regex)
    return any(value is not None for value in chosen) or arguments.sort != "file"


def _lines(report: LibraryReport, arguments: argparse.Namespace) -> Iterator[Line]:
    from ..inspect.drawing import line
    from ..inspect.listing import list_entries, list_sizes, list_symbols
    from ..inspect.text import headline, summary

    if not (arguments.symbols or arguments.blob or arguments.size):
        yield from summary(report)
        return
    yield headline(report)
    yield from (line(("problem: ", "bad"), text, hang=2) for text in report.problems)
    if arguments.symbols:
        for name, symbols in _symbols(report, arguments).items():
            table = getattr(report.symbols, name)
            yield from list_symbols(f"{name} symbols", symbols, len(table))
    if arguments.blob:
        yield from list_entries(report.blob) if report.blob else [line("no blob")]
    if arguments.size:
        yield from list_sizes(report)


def _symbols(report: LibraryReport, arguments: argparse.Namespace) -> dict[str, list[Symbol]]:
    from ..inspect.listing import select_symbols

    return {
        name: select_symbols(
            getattr(report.symbols, name),
            text=arguments.filter,
            pattern=arguments.regex,
            defined=vars(arguments)["is"],
            order=arguments.sort,
        )
        for name in _TABLES
        if arguments.table in (None, name)
    }


def _fields(report: LibraryReport, arguments: argparse.Namespace) -> dict[str, Any]:
    fields = report.fields()
    if _selects(arguments):
        fields["symbols"] = dict.fromkeys(_TABLES, ()) | _symbols(report, arguments)
    return fields
