"""Options of ``packer export`` for the signature of a library, and for its bill of materials."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parser import CommandParser


def add_trust_options(parser: CommandParser) -> None:
    """Add the options."""
    text = "reserve N bytes, such as 8192, for packer sign --embed"
    parser.add_argument("--signature-room", metavar="N", type=int, default=0, help=text)
    text = "store a bill of materials (CycloneDX), which packer sbom prints"
    parser.add_argument("--sbom", action="store_true", help=text)
