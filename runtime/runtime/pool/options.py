"""The numbers that a pool takes: bytes as text, and how many models."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(B|KiB|MiB|GiB|TiB)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def bytes_of(budget: int | str) -> int:
    """Return the bytes of a text such as "4 GiB"; another value as it is."""
    if not isinstance(budget, str):
        return budget
    match = _SIZE.fullmatch(budget)
    if match is None:
        units = ", ".join(_UNITS)
        text = f"budget: expected a number and one of {units}, as '4 GiB', found {budget!r}"
        raise ValueError(text)
    return int(float(match[1]) * _UNITS[match[2]])


def positive(what: str, number: int) -> int:
    """Refuse a number below 1; the ValueError names it `what`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"{what}: expected a positive number, found {number!r}")
    return number
