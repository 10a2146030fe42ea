"""The libraries that a project's wheel gets: their names, their export, and the tag."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.error import ExportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..wheel import Platform


class Library(NamedTuple):
    """A library of a wheel."""

    name: str  # its path in the wheel, with slashes: ``"geo/model.so"``
    project: Path  # the packer.toml that it is exported from


def libraries_of(value: Any, where: str, root: Path) -> tuple[Library, ...]:
    """Read the setting `where` of a project: a mapping of paths in the wheel to project files.

    The project files are relative to the folder `root`. Raises ExportError if the value is not such
    a mapping, or a project file is missing.
    """
    if not isinstance(value, Mapping) or not value:
        text = 'expected {"geo/model.so" = "packer.toml"}, found'
        raise ExportError(f"{where}: {text} {value!r}")
    return tuple(_library(name, project, where, root) for name, project in value.items())


def _library(name: Any, project: Any, where: str, root: Path) -> Library:
    path = PurePosixPath(name) if isinstance(name, str) else PurePosixPath()
    if len(path.parts) < 2 or path.is_absolute() or ".." in path.parts or path.suffix != ".so":
        text = "a library in a package, as geo/model.so"
        raise ExportError(f"{where}: expected {text}, found {name!r}")
    if not isinstance(project, str) or not (root / project).is_file():
        text = f"expected the packer.toml of {name}, found {project!r}; there is no such file"
        raise ExportError(f"{where}: {text} in {root}")
    return Library(str(path), root / project)


def export(library: Library, output: Path) -> None:
    """Export a library as `packer export` does, with its summary in the log of the build.

    Raises PackerError if the export fails.
    """
    from ...cli import export as command

    output.parent.mkdir(parents=True, exist_ok=True)
    command.run(command.parse([str(output), "--project", str(library.project)]))


def inputs_of(library: Library) -> list[Path]:
    """Return the files that the library is made of; the project file is the first."""
    from ...project import read_project

    return [library.project, *map(Path, read_project(library.project).inputs.paths)]


def platform_tag(paths: Sequence[Path]) -> tuple[str, Platform]:
    """Return the platform tag of a wheel with these shared objects, and how it was found."""
    from ..wheel import platform_of

    platform = platform_of(paths)
    return ".".join(sorted(platform.tags)), platform


def notes_of(platform: Platform) -> list[str]:
    """Return why a wheel cannot be for every system with glibc or musl; empty if it can."""
    if platform.is_portable:
        return []
    return [f"{platform.tags[0]}: {reason}" for reason in platform.because]
