"""CommandParser: argparse as every subcommand uses it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from ..files.text import printable


class CommandParser(argparse.ArgumentParser):
    """A parser whose texts are shown as they are written, and whose errors are safe to show."""

    def __init__(
        self, prog: str, *, description: str, epilog: str, usage: str | None = None
    ) -> None:
        super().__init__(
            prog,
            usage,
            description,
            epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        super().error(printable(message))

    def parse_paths(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse options and paths in any order; behind ``--`` all are paths.

        Such a path that begins with ``-`` gets ``./`` before it: argparse loses count of ``--``
        where options stand between positionals.
        """
        words = list(argv)
        if "--" in words:
            cut = words.index("--")
            behind = words[cut + 1 :]
            words[cut:] = [f"./{word}" if word.startswith("-") else word for word in behind]
        return self.parse_intermixed_args(words)
