"""The order of versions, for rules such as "not older than 1.2": that of Semantic Versioning 2.0.

A version is numbers separated by dots, then optionally ``-`` and the parts of a pre-release, then
optionally ``+`` and the build, which does not count. Missing numbers are 0.
"""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"(\d+(?:\.\d+)*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)
_MAX_LENGTH = 256

Order = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def order_of(version: str) -> Order:
    """Return a key that compares like the version; ValueError if it has no place in the order."""
    match = (
        _VERSION.fullmatch(version) if len(version) <= _MAX_LENGTH and version.isascii() else None
    )
    if match is None:
        raise ValueError("expected numbers separated by dots, such as '1.2' or '1.2.0-rc.1'")
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    parts = match[2].split(".") if match[2] else []
    before = tuple((not p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts)
    return tuple(numbers), not parts, before
