"""``packer check``: report if a library loads on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .findings import report
from .parser import CommandParser

_DESCRIPTION = """\
Report if a library loads on this machine: processor, glibc, needed libraries, loaders, drivers,
device architectures. The library is read, not loaded. Failures and warnings say how to fix them.

With --policy strict also report everything that runtime.harden refuses: constructors, destructors
and IFUNC resolvers other than the compiler's, an executable stack, segments that are writable and
executable, text relocations, RPATH and RUNPATH, needed libraries outside a list."""

_EPILOG = """\
examples:
  packer check model.so
  packer check model.so --json | jq '.findings[] | select(.status != "pass")'
  packer check model.so && python serve.py
  packer check model.so --without-python
  packer check model.so --policy strict --allow-needed libopenblas.so.0

Exit status: 0 if the library loads, even with warnings; 1 if it does not, if with
--without-python a part of it needs Python, or if it breaks a rule of --policy."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer check``."""
    parser = CommandParser("packer check", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("library", metavar="LIBRARY", help="the library")
    text = "also report what of the library a program with libdso cannot use"
    add("--without-python", action="store_true", help=text)
    add("--policy", choices=["strict"], help="also report what runtime.harden refuses")
    text = "with --policy: a library that may be needed; * stands for any text; repeatable"
    add("--allow-needed", metavar="NAME", action="append", default=[], help=text)
    text = "with --policy: accept RPATH and RUNPATH that begin with $ORIGIN"
    add("--allow-origin", action="store_true", help=text)
    parser.add_json()
    arguments = parser.parse_paths(argv)
    if (arguments.allow_needed or arguments.allow_origin) and not arguments.policy:
        parser.error("--allow-needed and --allow-origin need --policy strict")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Print the findings; exit status 1 if one of them failed."""
    from ..inspect.check import check_library

    findings = check_library(arguments.library)
    if arguments.without_python:
        from ..inspect.check_python import check_without_python

        findings += check_without_python(arguments.library)
    if arguments.policy:
        from ..inspect.check_policy import check_strict

        allowed = {"needed": arguments.allow_needed, "origin": arguments.allow_origin}
        findings += check_strict(arguments.library, **allowed)
    report(findings, arguments.json, path=arguments.library)
