"""write_wheel(libraries): a wheel that installs libraries as a Python package."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError
from runtime.registry import is_own_type

from ...files.output import refuse_output_among_inputs, replacing, reporting
from .archive import write_archive
from .metadata import REQUIRES_PYTHON, Metadata, checked, entry_points_text, wheel_text
from .package import describe, package_files, parts_of
from .platform_tag import Platform, platform_of, required

if TYPE_CHECKING:
    from .package import Part

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
    include: Sequence[str | os.PathLike[str]] = (),
    loaders: Mapping[str, str] | None = None,
    platform: str | None = None,
    note: Callable[[str], object] | None = None,
) -> Path:
    """Write a wheel that installs libraries as a Python package.

    One library is the package itself, and its functions are attributes of it: ``geo.mean(x)``.
    Of several each is a module of the package: ``geo.shape.area(x)``. A library is loaded when
    its first function is used; ``geo.model`` is the loaded tree. The installed package needs the
    distribution ``dso-runtime``, not packer. It has stubs for type checkers.

    The tag says where the libraries can be loaded, as measured from the libraries and symbol
    versions that they need: ``py3-none-manylinux_2_28_x86_64``. One that needs a library which
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
        The versions of Python; by default the versions of the runtime, ``">=3.11"``.
    requires : sequence of str
        Further distributions to install with it: ``"numpy>=1.26"``.
    include : sequence of path
        Further files for the package, such as Python modules.
    loaders : mapping of str to str, optional
        For each module type that the runtime does not know, by its type key, the place of its
        loader: ``"geo.palette:load"``.
    platform : str, optional
        Refuse libraries that cannot have this tag, such as ``"manylinux_2_28_x86_64"``.
    note : callable, optional
        ``note(text)`` is called with each remark: the reason for the tag, a missing loader.

    Returns
    -------
    Path
        The wheel; an existing one was replaced.

    Raises
    ------
    LibraryLoadError
        If a file is not a library, or a load would refuse it.
    ExportError
        If a value is invalid, the libraries are for different machines or C libraries, or the
        wheel cannot be written.
    ToolchainError
        If the package ``packaging`` is not installed.

    Examples
    --------
    >>> packer.write_wheel("model.so", name="geo", version="1.0")  # doctest: +SKIP
    PosixPath('dist/geo-1.0-py3-none-manylinux_2_28_x86_64.whl')
    """
    paths = _paths(libraries)
    imported = package or name.replace("-", "_").replace(".", "_")
    parts = parts_of(paths, imported)
    given = Metadata(
        name,
        version or _of_libraries("version", parts),
        description,
        describe(parts, name, description) if readme is None else _read(readme),
        license or _of_libraries("license", parts),
        tuple(map(Path, license_files)),
        author,
        url,
        requires_python or REQUIRES_PYTHON,
        tuple(requires),
        dict(loaders or {}),
    )
    metadata = checked(given)
    measured = platform_of(paths)
    found = required(measured, platform) if platform else measured
    files = package_files(parts, imported, metadata.version, map(Path, include))
    output = _write(Path(folder), files, metadata, found)
    if note is not None:
        unknown = _unknown_types(parts, metadata.loaders)
        about_parts = (*_without_functions(parts), *unknown, *_encrypted(parts, imported))
        for text in (*_notes(measured), *about_parts):
            note(text)
    return output


def _write(
    folder: Path, files: dict[str, str | Path], metadata: Metadata, platform: Platform
) -> Path:
    """Write the wheel of a package's files."""
    output = folder / f"{metadata.stem}-py3-none-{'.'.join(sorted(platform.tags))}.whl"
    refuse_output_among_inputs(output, [path for path in files.values() if isinstance(path, Path)])
    with replacing(output) as workspace:
        contents = {**files, **_dist_info(metadata, platform)}
        write_archive(workspace.output, contents, f"{metadata.stem}.dist-info")
        workspace.commit(is_program=False)
    return output


def _paths(libraries: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(libraries, str | os.PathLike):
        return [Path(libraries)]
    if not libraries:
        raise ExportError("libraries: expected at least one, found none")
    return [Path(path) for path in libraries]


def _of_libraries(key: str, parts: Sequence[Part]) -> str:
    """Return the version or licence that the libraries have (``[library]`` of packer.toml)."""
    found = {part.path.name: value for part in parts if (value := part.report.metadata.get(key))}
    if len(set(found.values())) > 1:
        text = ", ".join(f"{value!r} of {file}" for file, value in found.items())
        raise ExportError(f"{key}: expected one for all libraries, found {text}; give --{key}")
    if not found and key == "version":
        advice = "give it, as in --version 1.0, or set it in [library] of packer.toml"
        raise ExportError(f"version: expected one, found none; {advice}")
    return next(iter(found.values()), "")


def _read(path: str | os.PathLike[str]) -> str:
    with reporting(path, "read"):
        return Path(path).read_text(encoding="utf-8")


def _dist_info(metadata: Metadata, platform: Platform) -> dict[str, str | Path]:
    """Return the files of .dist-info, RECORD aside."""
    folder = f"{metadata.stem}.dist-info"
    files: dict[str, str | Path] = {
        f"{folder}/licenses/{name}": path for name, path in metadata.license_names().items()
    }
    if metadata.loaders:
        files[f"{folder}/entry_points.txt"] = entry_points_text(metadata)
    files[f"{folder}/METADATA"] = metadata.text()
    files[f"{folder}/WHEEL"] = wheel_text([f"py3-none-{tag}" for tag in sorted(platform.tags)])
    return files


def _notes(platform: Platform) -> list[str]:
    """Return the reasons for a tag: one is enough for a tag of glibc."""
    tag = platform.tags[0]
    if platform.is_portable:
        return [f"{tag}: {reason}" for reason in platform.because[:1]]
    return [f"{tag}: {reason}" for reason in (*platform.because, "PyPI takes no such wheel")]


def _without_functions(parts: Sequence[Part]) -> list[str]:
    """Return a note for each library of C code alone that declares no function."""
    return [
        f"{part.path.name}: it declares no function, so {part.module} has none; packer export "
        "--function declares some"
        for part in parts
        if not part.functions and part.is_complete and part.report.blob is None
    ]


def _unknown_types(parts: Sequence[Part], loaders: Mapping[str, str]) -> list[str]:
    """Return a note for each module type that neither the runtime nor the package loads."""
    keys = {m.type_key: part.path.name for part in parts for m in part.report.modules}
    return [
        f"{file}: nothing in the package loads the type {key}; --loader {key}=MODULE:FUNCTION "
        "names a loader, and --requires a distribution that registers one"
        for key, file in sorted(keys.items())
        if not (key in ("library", "encrypted") or is_own_type(key) or key in loaders)
    ]


def _encrypted(parts: Sequence[Part], imported: str) -> list[str]:
    """Return a note for each library with encrypted modules, for which the package has no key."""
    return [
        f"{part.path.name}: it has encrypted modules; a program uses {imported} with their key, "
        f"inside the block: with runtime.decrypting(key)"
        for part in parts
        if any(module.type_key == "encrypted" for module in part.report.modules)
    ]
