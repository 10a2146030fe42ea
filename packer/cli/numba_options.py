"""The options of `packer export` that compile Python functions: --numba and --signature."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError

from ..project.script import ScriptSource, read_signatures

if TYPE_CHECKING:
    from .parser import CommandParser


def add_numba_options(parser: CommandParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("Python functions; docs/numba.md")
    group.add_argument(
        "--numba", metavar="FILE", help="a Python file; Numba compiles its functions"
    )
    signature = "the signature of a function, as dist=float64(float64[::1]); a second adds another"
    parser.add_repeated("--signature", "NAME=SIGNATURE", signature, group)
    group.add_argument("--blas", metavar="FILE", help="the library of np.dot and np.linalg")
    unknown = "use a release of Numba that is not known to work"
    group.add_argument("--force", action="store_true", help=unknown)


def numba_source(parser: CommandParser, arguments: argparse.Namespace) -> ScriptSource | None:
    """Return the file that the options name, or None; end with exit code 2 for a mistake."""
    if arguments.numba is None:
        for option in ("signature", "force", "blas"):
            if getattr(arguments, option):
                parser.error(f"argument --{option}: needs --numba")
        return None
    for option in ("project", "onnx", "torch"):
        if getattr(arguments, option) is not None:
            parser.error(f"argument --{option}: not allowed with --numba")
    try:
        functions = read_signatures(arguments.signature)
    except ExportError as error:
        parser.error(f"argument --{error}")
    options = {"force": arguments.force, "blas": arguments.blas}
    return ScriptSource("numba", Path(arguments.numba), functions, (), options)
