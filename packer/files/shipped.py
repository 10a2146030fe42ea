"""Folders of C code that the distributions ship, in a wheel and in a checkout alike."""

from __future__ import annotations

from pathlib import Path

import runtime


def templates() -> Path:
    """Return the folder of the glue, the start-up code and the page; in a checkout it is a link."""
    return Path(__file__).parents[1] / "templates"


def headers() -> Path:
    """Return the folder of dso.h and the other public headers."""
    return Path(runtime.__file__).parent / "include"
