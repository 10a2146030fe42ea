"""``packer doctor``: report which compilers, drivers and packages this machine has."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .findings import report
from .parser import CommandParser

if TYPE_CHECKING:
    from ..inspect.findings import Finding

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

    report([*examine_machine(), *_importers()], arguments.json)


def _importers() -> Iterator[Finding]:
    from ..inspect.findings import Finding
    from ..project.registry import entries, every, problems

    usable = {importer.kind for importer in every()}
    for kind, entry in entries().items():
        package = entry.dist.name if entry.dist is not None else entry.value
        if text := problems().get(kind):
            remedy = f"update or remove the package {package}"
            yield Finding(f"importer {kind}", "warn", text, remedy)
        elif kind in usable:
            yield Finding(f"importer {kind}", "pass", f"from the package {package}")
