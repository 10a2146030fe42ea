"""Text for a terminal: lines whose parts have roles, drawn with or without colour and width.

The text may come from a hostile file. So lines contain plain text, and only `draw` writes escape
sequences: control characters of the text are written as escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from unicodedata import combining, east_asian_width

from ..files.text import printable

Role = Literal["", "title", "name", "dim", "good", "warn", "bad"]
Span = tuple[str, Role]

# ECMA-48, SGR; colours of the terminal's palette, readable on light and dark backgrounds.
_SGR = {"title": "1", "name": "36", "dim": "2", "good": "32", "warn": "33", "bad": "31"}
_RESET = "\x1b[0m"
_CUT = "\N{HORIZONTAL ELLIPSIS}"
_MIN_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    spans: Sequence[Span]  # the contents, left to right
    # How far the continuation lines of a long line are indented; None to cut it.
    hang: int | None = None


def line(*parts: str | Span, hang: int | None = None) -> Line:
    """Create a line of spans, and of text without a role."""
    return Line([(part, "") if isinstance(part, str) else part for part in parts], hang)


def draw(lines: Iterable[Line], *, colour: bool = False, width: int | None = None) -> str:
    """Draw lines, each with its newline, as printable text except for the colours.

    `width` is the most columns of a line; None for no limit.
    """
    drawn = (_fit(one, width) for one in lines)
    return "".join(f"{_paint(spans, colour)}\n" for rows in drawn for spans in rows)


def table(
    rows: Iterable[Sequence[Span]], *, right: Iterable[int] = (), indent: int = 2
) -> list[Line]:
    """Align the cells of rows; the last column has no fixed width.

    All rows have the same length; `right` has the indices of columns of numbers.
    """
    cells = [[(printable(text, keep=""), role) for text, role in row] for row in rows]
    widths = [
        max(map(_columns, (text for text, _ in column))) for column in zip(*cells, strict=True)
    ]
    numbers = set(right)
    return [Line([(" " * indent, ""), *_aligned(row, widths, numbers)]) for row in cells]


def _aligned(row: Sequence[Span], widths: Sequence[int], right: set[int]) -> Iterator[Span]:
    last = len(row) - 1
    for index, (text, role) in enumerate(row):
        space = " " * (widths[index] - _columns(text))
        if index in right:
            yield space, ""
        yield text, role
        if index not in right and index < last:
            yield space, ""
        if index < last:
            yield "  ", ""


def _paint(spans: Sequence[Span], colour: bool) -> str:
    if not colour:
        return "".join(text for text, _ in spans).rstrip()
    painted = (f"\x1b[{_SGR[r]}m{t}{_RESET}" if r and t.strip() else t for t, r in spans)
    return "".join(painted).rstrip()


def _fit(one: Line, width: int | None) -> Iterator[Sequence[Span]]:
    """Split a line into rows."""
    spans = [(printable(text, keep=""), role) for text, role in one.spans]
    limit = max(width, _MIN_WIDTH) if width is not None else None
    if limit is None or sum(_columns(text) for text, _ in spans) <= limit:
        yield spans
    elif one.hang is None:
        yield list(_cut(spans, limit - 1))
    else:
        yield from _wrap(spans, limit, one.hang)


def _cut(spans: Iterable[Span], left: int) -> Iterator[Span]:
    for text, role in spans:
        head = _head(text, left)
        yield head, role
        left -= _columns(head)
        if len(head) < len(text):
            break
    yield _CUT, "dim"


def _wrap(spans: Iterable[Span], width: int, hang: int) -> Iterator[list[Span]]:
    """Break between words, and inside a word that is wider than a line."""
    row: list[Span] = []
    left = width
    for word, role in _words(spans):
        if _columns(word.rstrip()) > left and left < width - hang:
            yield row
            row, left = [(" " * hang, "")], width - hang
        while _columns(word.rstrip()) > left:
            head = _head(word, left)
            yield [*row, (head, role)]
            row, left, word = [(" " * hang, "")], width - hang, word[len(head) :]
        row.append((word, role))
        left -= _columns(word)
    yield row


def _words(spans: Iterable[Span]) -> Iterator[Span]:
    """Iterate over the words, each with the spaces that follow it."""
    for text, role in spans:
        start = 0
        while start < len(text):
            end = text.find(" ", start)
            while 0 <= end < len(text) and text[end] == " ":
                end += 1
            end = len(text) if end < 0 else end
            yield text[start:end], role
            start = end


def _head(text: str, columns: int) -> str:
    """Return the start of a text that fits."""
    if text.isascii():
        return text[:columns]
    for index, char in enumerate(text):
        columns -= _columns(char)
        if columns < 0:
            return text[:index]
    return text


def _columns(text: str) -> int:
    """Return the width of a printable text in columns of a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in text)
