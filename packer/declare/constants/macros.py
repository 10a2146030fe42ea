"""Macros of preprocessed text (``-dD``), and their expansion (C11, 6.10.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..c.tokens import tokens_of

_PLACE = re.compile(r'# \d+ "((?:[^"\\]|\\.)*)"(.*)')
_DIRECTIVE = re.compile(r"#(define|undef) ([A-Za-z_$][\w$]*)", re.ASCII)
_PARAMETERS = re.compile(r"\(([^)]*)\)")
_MANY = 20_000  # tokens of one expansion
_DEEPEST = 100  # macros in macros


class Spaced(str):
    """A token that white space precedes, which matters to ``#``."""


class Macro(NamedTuple):
    """One macro. Few of a unit are needed, so its text is read when it is."""

    name: str
    text: str  # what follows the name
    file: str  # where it is defined, by the line markers
    is_system: bool  # True in a file that the compiler counts as one of the system's

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """The parameters; None if it is used without parentheses."""
        match = _PARAMETERS.match(self.text)
        return tuple(p.strip() for p in match[1].split(",") if p) if match else None

    @property
    def body(self) -> str:
        """The text that replaces it."""
        match = _PARAMETERS.match(self.text)
        return self.text[match.end() if match else 0 :].strip()

    @property
    def tokens(self) -> list[str]:
        """The tokens of its body."""
        # The parenthesis: a # at the beginning of a line would be one of the preprocessor's.
        made, end = list[str](), 1
        for token in tokens_of(f"({self.body}")[1:]:
            made.append(Spaced(token.text) if token.position > end else token.text)
            end = token.position + len(token.text)
        return made


class ExpansionError(Exception):
    """A macro that is used in a way that cannot be expanded."""


def macros_of(text: str) -> dict[str, Macro]:
    """Return the macros that are defined at the end of preprocessed text, in their order."""
    found: dict[str, Macro] = {}
    file, is_system = "", False
    for line in text.split("\n"):
        if line[:1] != "#":
            continue
        if match := _DIRECTIVE.match(line):
            found.pop(match[2], None)
            if match[1] == "define":
                found[match[2]] = Macro(match[2], line[match.end() :], file, is_system)
        elif match := _PLACE.match(line):
            file = re.sub(r"\\(.)", r"\1", match[1]) if "\\" in match[1] else match[1]
            is_system = "3" in match[2].split()
    return found


class Expansion:
    """Expands macros in tokens; a macro is not expanded inside its expansion."""

    def __init__(self, macros: Mapping[str, Macro]) -> None:
        self.macros = macros
        self.left = _MANY

    def expanded(self, tokens: Sequence[str], hidden: frozenset[str] = frozenset()) -> list[str]:
        """Return the tokens with all macros replaced. Raises ExpansionError."""
        made: list[str] = []
        pending = list(tokens)
        index = 0
        while index < len(pending):
            token = pending[index]
            index += 1
            macro = self.macros.get(token) if token not in hidden else None
            if macro is None or (
                macro.parameters is not None and pending[index : index + 1] != ["("]
            ):
                made.append(token)
                continue
            body = macro.tokens
            if macro.parameters is not None:
                given, index = _arguments(pending, index)
                body = self._with_arguments(macro, given, hidden)
            self.left -= len(body) + 1
            if self.left < 0 or len(hidden) > _DEEPEST:
                raise ExpansionError("a very long expansion")
            made += _after(token, self.expanded(_pasted(body), hidden | {token}))
        return made

    def _with_arguments(
        self, macro: Macro, given: list[list[str]], hidden: frozenset[str]
    ) -> list[str]:
        """Return the body of a macro with its arguments, expanded unless beside # or ##."""
        parameters = macro.parameters or ()
        if "..." in parameters or len(given) != max(len(parameters), 1):
            raise ExpansionError(f"{macro.name} with {len(given)} arguments")
        values = dict(zip(parameters, given, strict=False))
        body, made = macro.tokens, list[str]()
        for index, token in enumerate(body):
            before, after = body[index - 1 : index], body[index + 1 : index + 2]
            if token == "#" and after and after[0] in values and not _is_paste(body, index):
                continue
            if token not in values:
                made.append(token)
            elif before == ["#"] and not _is_paste(body, index - 1):
                made += _after(before[0], [_quoted(values[token])])
            elif before == ["#"] or (after == ["#"] and body[index + 2 : index + 3] == ["#"]):
                made += _after(token, values[token])
            else:
                made += _after(token, self.expanded(values[token], hidden))
        return made


def _after(replaced: str, tokens: list[str]) -> list[str]:
    """Return the tokens that replace one, with white space before them if it had some."""
    if not tokens:
        return tokens
    first = Spaced(tokens[0]) if isinstance(replaced, Spaced) else str(tokens[0])
    return [first, *tokens[1:]]


def _is_paste(body: Sequence[str], index: int) -> bool:
    """Return True if a # is one half of ##."""
    return body[index - 1 : index] == ["#"] or body[index + 1 : index + 2] == ["#"]


def _arguments(tokens: Sequence[str], index: int) -> tuple[list[list[str]], int]:
    """Read the arguments from an opening parenthesis on; return them, and the place after them."""
    found: list[list[str]] = [[]]
    depth = 0
    for place in range(index, len(tokens)):
        token = tokens[place]
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return found, place + 1
        if token == "," and depth == 1:
            found.append([])
        elif place > index:
            found[-1].append(token)
    raise ExpansionError("parentheses that do not end")


def _pasted(tokens: list[str]) -> list[str]:
    """Join the tokens around each ##."""
    made: list[str] = []
    index = 0
    while index < len(tokens):
        if tokens[index : index + 2] == ["#", "#"] and made and index + 2 < len(tokens):
            made[-1:] = _after(made[-1], [made[-1] + tokens[index + 2]])
            index += 3
        else:
            made.append(tokens[index])
            index += 1
    return made


def _quoted(tokens: Sequence[str]) -> str:
    """Return an argument as a string literal."""
    text = ""
    for token in tokens:
        text += " " if isinstance(token, Spaced) and text else ""
        is_literal = token[-1] in "\"'"
        text += re.sub(r'(["\\])', r"\\\1", token) if is_literal else token
    return f'"{text}"'
