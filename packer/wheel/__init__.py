"""write_wheel(libraries): a wheel that installs libraries as a Python package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from runtime.error import ExportError

from ..files.output import refuse_output_among_inputs, replacing, reporting
from .archive import write_archive
from .metadata import Metadata, checked, wheel_text
from .package import describe, package_files, parts_of
from .platform_tag import Platform, platform_of, required

__all__ = ["Platform", "platform_of", "write_wheel"]


def write_wheel(
    libraries: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str] = "dist",
    *,
    name: str,
    version: str | None = None,
    package: str | None = None,
    description: str = "",
    readme: str | os.PathLike[str] | None = None,
    license: str | None = None,
    license_files: Sequence[str | os.PathLike[str]] = (),
    author: str = "",
    url: str = "",
    requires_python: str = "",
    requires: Sequence[str] = (),
    platform: str | None = None,
) -> Path:
    """Write a wheel that installs libraries as a Python package.

    One library is the package itself, and its functions are attributes of it: ``geo.mean(x)``.
    Of several each is a module of the package: ``geo.shape.area(x)``. A library is loaded when
    its first function is used; ``geo.library`` is the loaded module. The installed package needs
    the distribution ``dso-runtime``, not packer.

    The tag says where the libraries can be loaded, as measured from the libraries and symbol
    versions that they need: ``py3-none-manylinux_2_17_x86_64``. One that needs a library which
    not every system has gets ``linux_x86_64``, which pip installs and PyPI does not take. The
    libraries are read, never loaded. Equal inputs give equal bytes; the time of the files is
    SOURCE_DATE_EPOCH, or 1980.

    Parameters
    ----------
    libraries : path, or sequence of path
        The libraries, of any one machine.
    folder : path
        Where to write the wheel; made if missing.
    name : str
        The name of the distribution, which pip installs.
    version : str, optional
        Its version; by default that of the library, if it has one.
    package : str, optional
        The name that Python imports; by default `name` with ``_`` for ``-`` and ``.``.
    description : str
        One line.
    readme : path, optional
        The long description, in Markdown; by default a list of the functions.
    license : str, optional
        An SPDX expression: ``"Apache-2.0"``; by default that of the library, if it has one.
    license_files : sequence of path
        Files for the wheel.
    author : str
        A name, an address, or ``"Name <name@example.org>"``.
    url : str
        The home page.
    requires_python : str
        The versions of Python; by default those of the runtime, ``">=3.11"``.
    requires : sequence of str
        Further distributions to install with it: ``"numpy>=1.26"``.
    platform : str, optional
        Refuse libraries that cannot have this tag, such as ``"manylinux_2_28_x86_64"``.

    Returns
    -------
    Path
        The wheel; an existing one was replaced.

    Raises
    ------
    LibraryLoadError
        If a file is no library.
    ExportError
        If a value is invalid, the libraries are for different machines or C libraries, or the
        wheel cannot be written.
    ToolchainError
        If the package ``packaging`` is not installed.

    Examples
    --------
    >>> packer.write_wheel("model.so", name="geo", version="1.0")  # doctest: +SKIP
    PosixPath('dist/geo-1.0-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl')
    """
    paths = _paths(libraries)
    imported = package or name.replace("-", "_").replace(".", "_")
    parts = parts_of(paths, imported)
    if version is None:
        raise ExportError("version: no library has one; give it, as in --version 1.0")
    given = Metadata(
        name, version, description, "", license or "", tuple(map(Path, license_files)),
        author, url, requires_python, tuple(requires),
    )  # fmt: skip
    metadata = checked(given)
    text = describe(parts, name, description) if readme is None else _read(readme)
    measured = platform_of(paths)
    found = required(measured, platform) if platform else measured
    dist_info = f"{metadata.file_name}.dist-info"
    licenses = metadata.license_names().items()
    files = {
        **package_files(parts, imported, metadata.version),
        **{f"{dist_info}/licenses/{own}": path for own, path in licenses},
        f"{dist_info}/METADATA": metadata.text() + text,
        f"{dist_info}/WHEEL": wheel_text([f"py3-none-{tag}" for tag in found.tags]),
    }
    output = Path(folder) / f"{metadata.file_name}-py3-none-{'.'.join(sorted(found.tags))}.whl"
    refuse_output_among_inputs(output, paths)
    with replacing(output) as workspace:
        write_archive(workspace.output, files, dist_info)
        workspace.commit(is_program=False)
    return output


def _paths(libraries: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(libraries, str | os.PathLike):
        return [Path(libraries)]
    if not libraries:
        raise ExportError("libraries: expected at least one, found none")
    return [Path(path) for path in libraries]


def _read(path: str | os.PathLike[str]) -> str:
    with reporting(path, "read"):
        return Path(path).read_text(encoding="utf-8")
