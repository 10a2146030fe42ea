"""JSON of unknown origin: its size is bounded before it is parsed; ambiguous text is refused."""

from __future__ import annotations

from json import JSONDecodeError, loads

from .._core import json_count
from ..error import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAX_NBYTES = 100_000_000
MAX_DEPTH = 64
# A parsed value takes up to 150 bytes, so accepted text takes at most 64 MB in addition to its own
# size. A graph of ten thousand operators has fewer values.
MAX_VALUES = 400_000
# Every int64 and float64 has fewer; int() takes quadratic time.
MAX_DIGITS = 40


def parse_json(text: str | bytes | memoryview, most_values: int = MAX_VALUES) -> Any:
    """Parse JSON as `json.loads` does, of at most 100 MB, 64 levels and 40 digits a number.

    Raises ValueError for text that is not JSON, not UTF-8, or exceeds a limit; for a key that
    occurs twice in one object, NaN, infinity, and half a surrogate pair.
    """
    _check("bytes", len(text), MAX_NBYTES)
    if not isinstance(text, str):
        text = str(text, "utf-8")
    _check_counts(text, most_values)
    try:
        return loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise ValueError(f"not JSON: {reason} at {error.pos:#x}") from None


def _check_counts(text: str, most_values: int) -> None:
    try:
        depth, values, digits = json_count(text)
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair, expected Unicode") from None
    _check("levels", depth, MAX_DEPTH)
    _check("values", values, most_values)
    _check("digits in a number", digits, MAX_DIGITS)


def _check(what: str, found: int, most: int) -> None:
    if found > most:
        raise ValueError(f"JSON of {found} {what}, expected at most {most}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {shown(twice)} occurs twice, expected once")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text}, expected a finite number")


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) != float("inf") else _refuse_constant(text)
