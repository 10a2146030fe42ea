"""The result of one check."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line of the summary; without `passed` where the check cannot run here."""

    name: str
    passed: bool | None
    detail: str
    output: str = ""
