"""JSON from a stranger: bounded before it is parsed, and without what JSON leaves open."""

from __future__ import annotations

from json import JSONDecodeError, loads

from ._core import json_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAX_NBYTES = 100_000_000
MAX_DEPTH = 64
# A parsed value takes up to 150 bytes: what is accepted stays within 64 MB beside its text, and is
# enough for a graph of ten thousand operators.
MAX_VALUES = 400_000
# Every int64 and float64 has fewer; int() needs quadratic time for more.
MAX_DIGITS = 40


def parse_json(text: str | bytes | memoryview) -> Any:
    """Parse JSON text.

    Parameters
    ----------
    text : str or buffer
        At most 100 MB, 400,000 values, 64 levels, 40 digits a number. A buffer holds UTF-8.

    Returns
    -------
    object
        As `json.loads` makes it.

    Raises
    ------
    ValueError
        It is no JSON, no UTF-8 or beyond the limits, a key stands twice in an object, a number is
        NaN or infinite, or text holds half a surrogate pair. The message says so and nothing more.
    """
    _check("bytes", len(text), MAX_NBYTES)
    if not isinstance(text, str):
        text = str(text, "utf-8")
    _check_counts(text)
    try:
        return loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise ValueError(f"no JSON: {reason} at {error.pos:#x}") from None


def _check_counts(text: str) -> None:
    try:
        depth, values, digits = json_count(text)
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair, expected Unicode") from None
    _check("levels", depth, MAX_DEPTH)
    _check("values", values, MAX_VALUES)
    _check("digits in a number", digits, MAX_DIGITS)


def _check(what: str, found: int, most: int) -> None:
    if found > most:
        raise ValueError(f"JSON of {found} {what}, expected at most {most}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"key {shown(key)} stands there twice, expected once")
        fields[key] = value
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text}, expected a finite number")


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) != float("inf") else _refuse_constant(text)


def shown(value: object) -> str:
    """The repr of a value as messages show it: cut where it is long."""
    text = repr(value[:80] if isinstance(value, str) else value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def listed(names: list[str]) -> str:
    """Names as messages show them: the first few."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(shown, names[:8])) + more
