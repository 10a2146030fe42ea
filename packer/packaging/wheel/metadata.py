"""The texts of a wheel's .dist-info: METADATA and WHEEL, of checked values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path

from runtime import __version__
from runtime.error import ExportError, ToolchainError
from runtime.registry import ENTRY_POINT_GROUP

from ...files.text import path_error

REQUIRES_PYTHON = ">=3.11"  # that of the runtime
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_RUNTIME = f"dso-runtime>={__version__}"
_CLASSIFIERS = (
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3",
    "Typing :: Typed",
)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a distribution; `checked` checks and normalises its texts."""

    name: str
    version: str
    description: str = ""  # one line
    readme: str = ""  # the long description, in Markdown
    license: str = ""  # an SPDX expression, or ``""``
    license_files: tuple[Path, ...] = ()  # files for the wheel
    author: str = ""  # ``"Name"``, ``"mail@example.org"`` or ``"Name <mail@example.org>"``
    url: str = ""  # the home page
    requires_python: str = ""  # versions of Python
    # Further distributions that the package needs, beside the runtime.
    requires: tuple[str, ...] = ()
    # The loader of each type key, as an entry point: ``"geo.palette:load"``.
    loaders: dict[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The beginning of the wheel's name: ``"geo_tools-1.0"``."""
        from packaging.utils import canonicalize_name

        return f"{canonicalize_name(self.name).replace('-', '_')}-{self.version}"

    def license_names(self) -> dict[str, Path]:
        """Return the license files by their names in the wheel.

        Raises ExportError if two have one name, or one is missing.
        """
        found: dict[str, Path] = {}
        for path in self.license_files:
            if path.name in found:
                raise path_error(path, f"the wheel has a {path.name} already, expected it once")
            if not path.is_file():
                raise path_error(path, "there is no such file, expected that of the licence")
            found[path.name] = path
        return found

    def text(self) -> str:
        """Return METADATA (Core metadata 2.4)."""
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {self.name}",
            f"Version: {self.version}",
            *_line("Summary", self.description),
            *_author(self.author),
            *([f"Project-URL: Homepage, {self.url}"] if self.url else []),
            *_line("License-Expression", self.license),
            *(f"License-File: {name}" for name in self.license_names()),
            *(f"Classifier: {classifier}" for classifier in _CLASSIFIERS),
            f"Requires-Python: {self.requires_python}",
            *(f"Requires-Dist: {text}" for text in (_RUNTIME, *self.requires)),
            "Description-Content-Type: text/markdown; charset=UTF-8",
        ]
        return "\n".join(lines) + f"\n\n{self.readme}"


def checked(given: Metadata) -> Metadata:
    """Check the values, and return them as the specifications write them.

    Raises ExportError if a value is invalid; the message names it. Raises ToolchainError if the
    package that reads these values is not installed.
    """
    try:
        from packaging.licenses import canonicalize_license_expression
        from packaging.requirements import Requirement
        from packaging.specifiers import SpecifierSet
        from packaging.utils import canonicalize_name, is_normalized_name
        from packaging.version import Version
    except ImportError as error:
        text = f"a wheel needs the package packaging ({error}); pip install 'packaging>=24.2'"
        raise ToolchainError(text) from None
    values = {
        name: _one_line(name, getattr(given, name))
        for name in ("name", "version", "description", "license", "author", "url")
    }
    if not is_normalized_name(canonicalize_name(values["name"])):
        text = "letters and digits, with . _ - between them"
        raise ExportError(f"name: expected {text}, found {values['name']!r}")
    version = _read("version", values["version"], "a version as 1.0 or 2.1.3", Version)
    expression = values["license"]
    if expression:
        expected = "an SPDX expression as MIT or Apache-2.0"
        expression = _read("license", expression, expected, canonicalize_license_expression)
    expected = "versions as >=3.11"
    python = _read("requires_python", given.requires_python, expected, SpecifierSet)
    requires = [
        _read("requires", text, "a requirement as numpy>=1.26", Requirement)
        for text in given.requires
    ]
    return Metadata(
        values["name"], version, values["description"], given.readme, expression,
        given.license_files, values["author"], values["url"], python, tuple(requires),
        _loaders(given.loaders),
    )  # fmt: skip


def _one_line(name: str, text: str) -> str:
    text = text.strip()
    if not text.isprintable():
        raise ExportError(f"{name}: expected one line of printable text, found {text!r}")
    return text


def _read(name: str, text: str, expected: str, read: Callable[[str], object]) -> str:
    """Return the text as the specification writes it."""
    try:
        return str(read(text))
    except ValueError:
        raise ExportError(f"{name}: expected {expected}, found {text!r}") from None


def _line(field: str, text: str) -> list[str]:
    return [f"{field}: {text}"] if text else []


def _author(text: str) -> list[str]:
    """A name and an address have separate fields."""
    return _line("Author-email" if "@" in parseaddr(text)[1] else "Author", text)


def _loaders(given: dict[str, str]) -> dict[str, str]:
    """Check entry points: a type key, and where its loader is."""
    for key, place in given.items():
        if not _ENTRY_POINT.fullmatch(place):
            text = f"expected MODULE:FUNCTION as geo.palette:load, found {place!r}"
            raise ExportError(f"loader of {key}: {text}")
        if not key.isprintable() or set(key) & set("=[]\n") or key != key.strip():
            raise ExportError(f"loaders: expected a type key, found {key!r}")
    return given


def entry_points_text(metadata: Metadata) -> str:
    """Return entry_points.txt, which names the loaders for the runtime."""
    lines = [f"{key} = {place}" for key, place in sorted(metadata.loaders.items())]
    return "\n".join([f"[{ENTRY_POINT_GROUP}]", *lines]) + "\n"


def wheel_text(tags: Sequence[str]) -> str:
    """Return WHEEL: who made it, and the tags."""
    lines = ["Wheel-Version: 1.0", f"Generator: packer {__version__}", "Root-Is-Purelib: false"]
    return "\n".join([*lines, *(f"Tag: {tag}" for tag in tags)]) + "\n"
