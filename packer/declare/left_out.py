"""The functions that an export left out: the text of ``__packer_left_out``.

    packer-left-out 1
    function find int (*find(int n))(int): result: a pointer to data of unknown size, ...
    function old an old-style definition, ...         without a type that can be read
    more 12                                           further functions, which are not listed

A NUL ends the text. The native core reads it when a look-up of a function fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..modules.host import HostModule

FIRST_LINE = "packer-left-out 1"
MAX_FUNCTIONS = 256
MAX_NBYTES = 1 << 16  # with the NUL
_MAX_TEXT = 2048  # the characters of a declaration, and of a reason
_LAST_NBYTES = 64  # enough for the NUL and the line of further functions


def dump_left_out(hosts: Iterable[HostModule], made: Collection[str]) -> str:
    """Write the text of ``__packer_left_out``, without the NUL; empty if there is no such function.

    `made` are the functions that the library has: another module may define one of the same name.
    """
    lines = {
        name: _line(name, host.left_out_types.get(name, ""), reason)
        for host in hosts
        for name, reason in host.left_out.items()
        if name not in made
    }
    text, count = f"{FIRST_LINE}\n", 0
    for line in [*lines.values()][:MAX_FUNCTIONS]:
        if len(text.encode()) + len(line.encode()) > MAX_NBYTES - _LAST_NBYTES:
            break
        text, count = text + line, count + 1
    more = f"more {len(lines) - count}\n" if count < len(lines) else ""
    return text + more if lines else ""


def _line(name: str, declaration: str, reason: str) -> str:
    parts = [_plain(part) for part in (declaration, reason) if part]
    return f"function {name} {': '.join(parts)}\n"


def _plain(text: str) -> str:
    """Return text of one line, cut, without characters that UTF-8 or a terminal cannot show."""
    text = " ".join(text.split())
    shown = "".join(char if char.isprintable() else "?" for char in text[:_MAX_TEXT])
    return f"{shown}..." if len(text) > _MAX_TEXT else shown
