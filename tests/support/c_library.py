"""Libraries of C that Debian packages, and how each is exported from its headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import packer


class Library(NamedTuple):
    """One library: its Debian package, headers below /usr/include, libraries and options."""

    package: str
    headers: tuple[str, ...]
    libraries: tuple[str, ...]
    use: Callable[[Any, Path], None]
    functions: Mapping[str, Any] = {}
    options: tuple[str, ...] = ()

    def module(self) -> packer.importers.header.HeaderModule:
        """The module of the headers; it says what it leaves out."""
        paths = [Path("/usr/include", header) for header in self.headers]
        return packer.from_header(
            paths, libraries=self.libraries, options=self.options, functions=self.functions
        )
