"""``packer sbom``: print the bill of materials of a library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Print the bill of materials that `packer export --sbom` stored in a library: its sources, compilers,
options, linked archives, kernels and weights, with their digests. It is a CycloneDX 1.6 document in
JSON. The library is read, not run."""

_EPILOG = """\
examples:
  packer export model.so a.c --sbom --metadata version=1.2 --metadata license=MIT
  packer sbom model.so > model.cdx.json
  packer sbom model.so | jq '.components[] | [.name, .hashes[0].content]'"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer sbom``."""
    parser = CommandParser("packer sbom", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the document."""
    import json

    from ..trust.sbom.read import read_sbom

    write(json.dumps(read_sbom(arguments.library), indent=2))
