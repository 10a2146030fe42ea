"""The command line: streams, errors and exit codes, which all subcommands share.

Each subcommand is one file with `parse`, which reads its arguments, and `run`, which raises a
PackerError if it fails, or SystemExit with another status.

0 done    1 failed    2 wrong usage    129, 130, 143 ended by SIGHUP, Ctrl-C, SIGTERM
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import runtime
from runtime.error import LibraryLoadError, PackerError, ToolchainError

from ..files.output import terminate_as_exception
from ..files.text import printable
from .parser import CommandParser
from .terminal import flush, open_missing_streams, write_error

COMMANDS = {
    "export": "make one shared library of a tree of modules",
    "link": "link tars, objects and archives that an export made",
    "load": "load a library, print its tree, call a function",
    "generate": "generate tokens with a language model",
    "inspect": "show the contents of a library without running it",
    "diff": "compare two libraries",
    "extract": "write the payloads of a library as files, with a packer.toml",
    "check": "report if a library loads on this machine, and how to fix it if not",
    "doctor": "report which compilers, drivers and packages this machine has",
    "cache": "show the size of the cache of compiled objects, or clear it",
    "config": "print how to compile and link programs that load libraries",
    "c-header": "write a type-safe C header of a library",
    "stubs": "write the types of a library's functions for type checkers",
    "keygen": "make a pair of keys that sign libraries",
    "sign": "sign a library, in a file beside it or inside it",
    "verify": "verify the signature of a library",
    "sbom": "print the bill of materials of a library",
    "wheel": "write a wheel that installs libraries as a Python package",
    "init": "write a commented packer.toml and a sample source",
    "completion": "print a script that completes this command line in a shell",
}
# Lines of a compiler's output that are shown: its first errors cause the others.
_SHOWN_LINES = 40


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, with the arguments of this process by default; return the exit status.

    Raises SystemExit with the status for ``--help``, wrong usage, SIGTERM and SIGHUP.
    """
    open_missing_streams()
    try:
        with terminate_as_exception():
            _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except Exception as error:
        _report(error)
        return 1
    finally:
        if argv is None:  # the process ends: a search for cycles takes time and frees nothing
            gc.freeze()
    return 0


def module_of(command: str) -> str:
    """Return the module of a subcommand, relative to this package."""
    return f".{command.replace('-', '_')}"


def _run(argv: Sequence[str]) -> None:
    try:
        if not argv or argv[0] not in COMMANDS:
            _parser().parse_args(argv)  # --help, --version, or wrong usage: ends here
        name, *rest = argv
        command = import_module(module_of(name), __name__)
        command.run(command.parse(rest))
    finally:
        flush()  # the output of argparse and of the user's code


def _parser() -> CommandParser:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    parser = CommandParser(
        "packer",
        usage="packer [-h] [--version] COMMAND ...",
        description="Make one shared library of C code, kernels, weights and other modules; load, "
        f"inspect and compare such libraries.\n\ncommands:\n{commands}",
        epilog="examples:\n  packer export a.so a.c       # every function of a.c\n"
        "  packer load a.so add 1 2     # call one\n  packer init                  # write a "
        "packer.toml, which describes a library\n\n"
        "`packer COMMAND --help` explains a command and shows more examples.",
    )
    parser.add_argument("--version", action="version", version=f"packer {runtime.__version__}")
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, help=argparse.SUPPRESS)
    return parser


def _report(error: Exception) -> None:
    """Write the error as one line, after the output of a compiler, which it does not repeat."""
    if os.environ.get("PACKER_TRACEBACK"):
        import traceback

        write_error("".join(traceback.format_exception(error)))
    text = str(error)
    if isinstance(error, ToolchainError) and error.stderr:
        from ..toolchain.outcome import summary

        lines = error.stderr.splitlines()
        more = [f"... {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
        shown = "\n".join(lines[:_SHOWN_LINES] + more)
        write_error(shown)
        if (said := summary(error.stderr)) in shown:
            text = text.replace(f": {said}", "", 1)
    if isinstance(error, PackerError):
        write_error(f"packer: {text}{hint(error)}")
    else:
        what = printable(f"{type(error).__name__}: {error}").replace("\n", " ")
        write_error(f"packer: internal error: {what}")
        write_error("run with PACKER_TRACEBACK=1 for the traceback")


def hint(error: PackerError) -> str:
    """Return what to do about an error: the command for a file that is not a library; or ""."""
    if isinstance(error, ToolchainError) and "; " not in str(error):  # no advice yet
        from .hints import hint_of_output

        return hint_of_output(error.stderr)
    if isinstance(error, LibraryLoadError) and error.reason in ("not-elf", "format") and error.path:
        from .hints import hint_of

        return hint_of(error.path)
    return ""
