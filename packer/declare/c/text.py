"""Preprocessed C and C++ text, divided into its declarations without parsing them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Where a declaration may end, and everything that may contain such a character.
_MARK = re.compile(
    r"""^[ \t]*\#[ \t]*(?:line[ \t]+)?(?P<line>[0-9]+)[ \t]+"(?P<file>(?:[^"\\\n]|\\.)*)"
        (?P<flags>[^\n]*)
    |^[ \t]*\#[ \t]*pragma[ \t]+pack[ \t]*\((?P<pack>[^)\n]*)\)[^\n]*
    |^[ \t]*\#(?:\\\n|[^\n])*
    |R"(?P<raw>[^()\\\s]{0,16})\((?:.*?)\)(?P=raw)"
    |"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*'
    |/\*.*?\*/|//[^\n]*
    |[{};]
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MARKER_LINES = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*\n?", re.MULTILINE)
_TRANSPARENT = re.compile(
    r'\s*(extern\s*"C(\+\+)?"|(inline\s+)?(?P<space>namespace)(\s+[\w:]+)?(\s*\[\[.*?\]\])?)\s*',
    re.DOTALL,
)
# After the attributes are dropped, nothing follows the parameters of a function but such words, or
# the extents of the array that its result points to.
_BODY = re.compile(
    r"\)\s*(?:\[[^\]]*\]\s*)*(?:(?:const|noexcept|override|final)\s*)*(?:->[^(){};]*)?$"
)
_LONGEST_HEAD = 4096
_INNER = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"  # three levels of parentheses
# [[nodiscard]], but not an attribute that makes another type.
_DOUBLE = re.compile(
    r"\[\[(?![^\]]*\b(?:__)?(?:vector_size|mode|aligned|packed))(?:[^\[\]\"]|\"[^\"\n]*\")*\]\]"
)
_LABEL = re.compile(
    rf"\b(?:__(?:attribute|asm|declspec)(?:__)?|_Alignas|alignas)\s*\({_INNER}\)|\b__extension__\b"
)
# int old(a, b) int a; The words after the parentheses of a C++ function are not a declaration.
_OLD_STYLE = re.compile(
    r"[^;{}()=]*\b\w+\s*\(\s*\w+(?:\s*,\s*\w+)*\s*\)\s*"
    r"(?!(?:(?:const|volatile|noexcept|override|final)\b\s*)*$)\w[\w\s]*[\s*]\w[^{}]*"
)


class Chunk(NamedTuple):
    """The text of one declaration at file scope, or of a function with its body."""

    text: str  # without the body of a function
    is_definition: bool  # True if a function's body follows the text
    is_c: bool  # True inside ``extern "C" { }``
    file: str  # where it begins, by the preprocessor's line markers
    line: int  # likewise
    is_system: bool  # True in a file that the compiler counts as one of the system's
    attributes: str = ""  # the attributes that a pragma adds to its structs: ``pack=4``
    is_global: bool = True  # False in a namespace of C++

    @property
    def is_old_style(self) -> bool:
        """Return True for a definition whose parameters are declared after the parentheses."""
        return self.is_definition and is_old_style(self.text)


def chunks_of(text: str) -> Iterator[Chunk]:
    """Divide C or C++ text into declarations.

    The declarations in blocks of ``extern "C"`` and in namespaces of the user are at file scope.
    """
    return _Splitter(text).chunks()


class _Splitter:
    def __init__(self, text: str) -> None:
        self.text = text
        self.start = 0
        self.file, self.is_system = "", False
        self.line, self.line_start = 1, 0
        self.opened: list[bool] = []  # transparent blocks; True for extern "C"
        self.spaces: list[bool] = []  # likewise; True for a namespace
        self.packs = [""]

    def chunks(self) -> Iterator[Chunk]:
        depth = 0
        body = -1
        for match in _MARK.finditer(self.text):
            mark = match.group()
            if match["file"] is not None:
                self.marker(match)
            elif match["pack"] is not None:
                self.pragma_pack([word.strip() for word in match["pack"].split(",")])
            elif mark == "{":
                if depth == 0:
                    head = self.text[self.start : match.start()]
                    block = _TRANSPARENT.fullmatch(without_labels(_MARKER_LINES.sub("", head)))
                    if block and not (block["space"] and self.is_system):
                        self.opened.append('"C"' in head or any(self.opened))
                        self.spaces.append(bool(block["space"]))
                        self.restart(match.end())
                        continue
                    body = match.start() if block or _is_function(head) else -1
                depth += 1
            elif mark == "}":
                if depth == 0:
                    if self.opened:
                        self.opened.pop(), self.spaces.pop()
                    self.restart(match.end())
                    continue
                depth -= 1
                if depth == 0 and body >= 0:
                    yield self.chunk(body, is_definition=True)
                    self.restart(match.end())
                    body = -1
            elif mark == ";" and depth == 0 and not self.is_in_old_style(match.start()):
                yield self.chunk(match.start(), is_definition=False)
                self.restart(match.end())

    def marker(self, match: re.Match[str]) -> None:
        file = match["file"]
        self.file = re.sub(r"\\(.)", r"\1", file) if "\\" in file else file
        self.is_system = "3" in match["flags"].split()
        self.line, self.line_start = int(match["line"]), match.end() + 1
        if not self.text[self.start : match.start()].strip():
            self.start = match.end()

    def pragma_pack(self, words: list[str]) -> None:
        if words[0] == "push":
            self.packs.append(self.packs[-1])
        elif words[0] == "pop" and len(self.packs) > 1:
            self.packs.pop()
        if words[-1].isdigit() or words == [""]:
            self.packs[-1] = words[-1]

    def is_in_old_style(self, end: int) -> bool:
        """Return True at the end of a parameter that is declared after the parentheses."""
        following = self.text[end + 1 : end + _LONGEST_HEAD].partition("{")[0]
        return is_old_style(self.text[self.start : end]) and "(" not in following

    def restart(self, position: int) -> None:
        self.start = position

    def chunk(self, end: int, is_definition: bool) -> Chunk:
        text = self.text[self.start : end]
        begun = self.start + len(text) - len(text.lstrip())
        line = self.line + self.text.count("\n", self.line_start, begun)
        text = _DOUBLE.sub(" ", _MARKER_LINES.sub("", text)).strip()
        is_c = bool(self.opened) and self.opened[-1]
        attributes = f"pack={self.packs[-1]}" if self.packs[-1] else ""
        place = self.file, line, self.is_system
        return Chunk(text, is_definition, is_c, *place, attributes, not any(self.spaces))


def _is_function(head: str) -> bool:
    """Return True if a block after this text is the body of a function."""
    text = without_labels(head[-_LONGEST_HEAD:]).rstrip()
    return bool(_BODY.search(text[-80:])) or (text.endswith(";") and is_old_style(text))


def is_old_style(head: str) -> bool:
    """Return True for the head of an old-style definition: ``int old(a) int a;``."""
    return ")" in head and bool(_OLD_STYLE.fullmatch(without_labels(_MARKER_LINES.sub("", head))))


def without_labels(head: str) -> str:
    """Drop attributes and assembler names, whose parentheses are not parameters."""
    return _LABEL.sub(" ", head) if "__" in head or "lignas" in head else head
