"""Which symbols of the host code a library exports: a version script for the linker."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runtime.error import ExportError

from ..files.text import path_error

if TYPE_CHECKING:
    from .formats import OutputFormat

Visibility = Literal["default", "declared"]
VISIBILITIES: tuple[Visibility, ...] = ("default", "declared")


def check_visibility(visibility: str, output: Path, output_format: OutputFormat) -> None:
    """Refuse an unknown visibility, and one that an output cannot have.

    Raises ValueError if the visibility is unknown. Raises ExportError if the output is not linked:
    only a linker hides symbols.
    """
    if visibility not in VISIBILITIES:
        known = ", ".join(map(repr, VISIBILITIES))
        raise ValueError(f"unknown visibility {visibility!r}; known: {known}")
    if visibility == "declared" and not output_format.is_linked:
        text = f"visibility 'declared' is for shared libraries, found .{output_format.suffix}"
        raise path_error(output, f"{text}; drop it, or export a .so")


def exporting_only(symbols: Iterable[str], folder: Path) -> list[str]:
    """Write a version script into a private folder, and return the options for a linker driver.

    All other symbols become local. The script may name symbols that nothing defines.
    """
    path = folder / "exports.map"
    lines = [f"    {_pattern(symbol)};" for symbol in dict.fromkeys(symbols)]
    text = "\n".join(["{", "  global:", *lines, "  local: *;", "};", ""])
    path.write_text(text, encoding="utf-8")
    return ["-Xlinker", f"--version-script={path}"]


def _pattern(symbol: str) -> str:
    """Write a symbol as a pattern that matches it alone: lld refuses undefined plain names.

    One that ends with "*" is a pattern.
    """
    if symbol.endswith("*"):
        return symbol
    if not symbol.isascii():
        raise ExportError(f"function {symbol!r}: visibility 'declared' needs an ASCII name")
    return f"{symbol[:-1]}[{symbol[-1]}]"
