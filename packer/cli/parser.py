"""CommandParser: argparse as every subcommand uses it."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from ..files.text import printable

_ALLOW = "--allow-undefined"


class _ParserFoundError(Exception):
    """Carries the parser out of a function that would parse."""

    def __init__(self, parser: CommandParser) -> None:
        super().__init__()
        self.parser = parser


class _Sought(list[str]):
    """Arguments that are not parsed: the parser is sought."""


def parser_of(parse: Callable[[Sequence[str]], argparse.Namespace]) -> CommandParser:
    """Return the parser that the function `parse` of a command makes."""
    try:
        parse(_Sought())
    except _ParserFoundError as found:
        return found.parser
    raise AssertionError(f"{parse.__module__} parses without a CommandParser")


def is_sought(argv: Sequence[str]) -> bool:
    """Return True if `parser_of` asks for a parser with these arguments."""
    return isinstance(argv, _Sought)


def names_in(text: str) -> list[str]:
    """Split the value of an option at its commas."""
    return [name.strip() for name in text.split(",")]


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fits paragraphs to the terminal; a paragraph with an indented line keeps its lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(
            part if "\n " in part else textwrap.fill(part, min(width, 98), break_long_words=False)
            for part in paragraphs
        )


class CommandParser(argparse.ArgumentParser):
    """A parser that lays out its texts, and escapes its errors."""

    def __init__(
        self, prog: str, *, description: str, epilog: str, usage: str | None = None
    ) -> None:
        super().__init__(
            prog, usage, description, epilog, formatter_class=_HelpFormatter, allow_abbrev=False
        )

    def error(self, message: str) -> NoReturn:
        """End with exit code 2; the message has the name that is near what the user wrote."""
        super().error(printable(message + self._near(message)))

    def _near(self, message: str) -> str:
        """Return the option or choice near the first unknown word of a message of argparse."""
        if unknown := re.match("unrecognized arguments:.*? (-[^ =]+)", message):
            known = list(self._option_string_actions)
        elif unknown := re.search("invalid choice: '(.*)' \\(choose from (.*)\\)$", message):
            known = re.findall("[^', ]+", unknown[2])
        else:
            return ""
        from difflib import get_close_matches

        close = get_close_matches(unknown[1], known, n=1)
        return f"; did you mean {close[0]}?" if close else ""

    def _refuse_unknown(self, argv: Sequence[str]) -> None:
        """Refuse options that do not exist; argparse takes one with a space for a path."""
        known, before = self._option_string_actions, ""
        for word in takewhile(lambda word: word != "--", argv):
            named = re.match("(--[^ =]+)=.* ", word, re.DOTALL)
            is_value = before in known and known[before].nargs != 0
            if named and named[1] not in known and not is_value:
                self.error(f"unrecognized arguments: {word}")
            before = word

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, unless `parser_of` asks for the parser."""
        if isinstance(args, _Sought):
            raise _ParserFoundError(self)
        return super().parse_known_args(args, namespace)

    def add_json(self) -> None:
        """Add the option of all commands that report."""
        self.add_argument("--json", action="store_true", help="print JSON, for programs")

    def add_repeated(self, option: str, metavar: str, text: str, group: Any = None) -> None:
        """Add an option that may be given several times, in a group of the help."""
        text = f"{text}; may be repeated"
        add = (group or self).add_argument
        add(option, action="append", default=[], metavar=metavar, help=text)

    def add_link_options(self) -> None:
        """Add the options of all commands that link."""
        add: Any = self.add_argument
        add("--target", metavar="TRIPLE", help="make it for this machine: aarch64-linux-gnu")
        add("--soname", metavar="NAME", help="its name for other binaries: libmodel.so.1")
        self.add_repeated("--option", "OPTION", "an option for the linker driver: --option=-lfoo")
        allowed = "the process provides these symbols: --allow-undefined='cu*'; alone: all of them"
        kept: Any = {"action": "append", "dest": "option", "type": lambda text: f"{_ALLOW}={text}"}
        add(_ALLOW, nargs="?", metavar="PATTERN", help=allowed, **kept)
        add("--save-temps", metavar="FOLDER", help="keep the intermediate files in this folder")
        add("-v", "--verbose", action="store_true", help="print each step, file and command")

    def parse_paths(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse options and paths in any order; after ``--`` all arguments are paths.

        Such a path that begins with ``-`` gets the prefix ``./``: argparse does not handle ``--``
        where options and positionals are mixed.
        """
        if is_sought(argv):
            raise _ParserFoundError(self)
        self._refuse_unknown(argv)
        words = [f"{word}=*" if word == _ALLOW else word for word in argv]
        if "--" in words:
            cut = words.index("--")
            paths = words[cut + 1 :]
            words[cut:] = [f"./{path}" if path.startswith("-") else path for path in paths]
        return self.parse_intermixed_args(words)
