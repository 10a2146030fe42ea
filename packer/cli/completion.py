"""``packer completion``: print a script that completes the command line in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Print a script that completes commands, options and files in a shell. The script is made of the
options that this version has; print it again after an update."""

_EPILOG = """\
examples:
  eval "$(packer completion bash)"                 # in ~/.bashrc
  eval "$(packer completion zsh)"                  # in ~/.zshrc, after compinit
  packer completion fish > ~/.config/fish/completions/packer.fish"""

SHELLS = ("bash", "zsh", "fish")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer completion``."""
    parser = CommandParser("packer completion", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    return parser.parse_args(argv)


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    from importlib import import_module

    from . import COMMANDS, module_of, shell_scripts
    from .parser import parser_of

    commands = [
        shell_scripts.command_of(
            name, text, parser_of(import_module(module_of(name), __package__).parse)
        )
        for name, text in COMMANDS.items()
    ]
    write(getattr(shell_scripts, arguments.shell)(commands))
