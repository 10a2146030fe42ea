"""The hook of setuptools: a build command for libraries, and the tag of the wheel that has them.

Setuptools calls `check_keyword` and `finalize` by entry points, in the build of every project of an
environment with packer.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command
from setuptools.errors import SetupError

from runtime.error import PackerError

from .libraries import Library, export, inputs_of, libraries_of, notes_of, platform_tag

KEYWORD, TABLE = "dso_packer", "tool.dso-packer.libraries"


def check_keyword(distribution: Any, name: str, value: Any) -> None:
    """Check ``setup(dso_packer={"geo/model.so": "packer.toml"})``."""
    with _as_setup_error():
        libraries_of(value, name, _root(distribution))


def finalize(distribution: Any) -> None:
    """Add the build command to a project that names libraries."""
    with _as_setup_error():
        libraries = _libraries(distribution)
    if not libraries or "build_dso" in distribution.cmdclass:
        return
    build = distribution.get_command_class("build")
    wheel = distribution.get_command_class("bdist_wheel")
    commands = [*build.sub_commands, ("build_dso", None)]
    distribution.cmdclass |= {
        "build": type("build", (build,), {"sub_commands": commands}),
        "build_dso": type("build_dso", (BuildLibraries,), {"libraries": libraries}),
        "bdist_wheel": type("bdist_wheel", (_TaggedWheel, wheel), {}),
    }
    # The files of the wheel belong in platlib, as in a project with extension modules.
    distribution.has_own_extensions = bool(distribution.has_ext_modules())
    distribution.has_ext_modules = lambda: True


def _libraries(distribution: Any) -> tuple[Library, ...]:
    root = _root(distribution)
    keyword = getattr(distribution, KEYWORD, None)
    found = () if keyword is None else libraries_of(keyword, KEYWORD, root)
    project = root / "pyproject.toml"
    if not project.is_file():
        return found
    text = project.read_text(encoding="utf-8")
    if "dso-packer" not in text:  # in most builds of an environment
        return found
    import tomllib

    table = tomllib.loads(text).get("tool", {}).get("dso-packer")
    if table is None:
        return found
    value = table.get("libraries") if isinstance(table, dict) else table
    return (*found, *libraries_of(value, TABLE, root))


def _root(distribution: Any) -> Path:
    return Path(distribution.src_root or os.curdir)


class _as_setup_error:  # noqa: N801 - used as a function
    """Report an error of packer as one line of the build, without a traceback."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: object, _traceback: object) -> None:
        if isinstance(error, PackerError):
            raise SetupError(f"dso-packer: {error}") from None


class BuildLibraries(Command):
    """Export the libraries of the project into its packages.

    In `editable_mode` they are written beside the sources.
    """

    description = "export libraries from packer.toml"
    user_options: ClassVar[list[Any]] = []
    libraries: tuple[Library, ...] = ()
    editable_mode = False

    def initialize_options(self) -> None:
        self.build_lib = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def run(self) -> None:
        with _as_setup_error():
            for library in self.libraries:
                path = self._in_source(library) if self.editable_mode else self._built(library)
                export(library, Path(path))

    def get_outputs(self) -> list[str]:
        return [self._built(library) for library in self.libraries]

    def get_output_mapping(self) -> dict[str, str]:
        if not self.editable_mode:
            return {}
        return {self._built(library): self._in_source(library) for library in self.libraries}

    def get_source_files(self) -> list[str]:
        """Return the files that an sdist needs, relative to the project."""
        root = _root(self.distribution).resolve()
        with _as_setup_error():
            paths = [path.resolve() for library in self.libraries for path in inputs_of(library)]
        return sorted({str(path.relative_to(root)) for path in paths if path.is_relative_to(root)})

    def _built(self, library: Library) -> str:
        return os.path.join(str(self.build_lib), library.name)

    def _in_source(self, library: Library) -> str:
        folder, _, file = library.name.rpartition("/")
        build_py = self.get_finalized_command("build_py")
        return os.path.join(build_py.get_package_dir(folder.replace("/", ".")), file)


class _TaggedWheel:
    """Added to bdist_wheel: the tag of the files in the wheel, rather than of this machine."""

    distribution: Any
    plat_name_supplied: bool
    python_tag: str

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()  # type: ignore[misc]
        if not self.distribution.has_own_extensions:
            python, abi = self.python_tag, "none"
        build = self.distribution.get_command_obj("build_dso")
        folder = Path(build.build_lib or os.curdir)
        built = [Path(path) for path in build.get_outputs()] if build.build_lib else []
        if self.plat_name_supplied or not built or not all(path.is_file() for path in built):
            return python, abi, platform  # an editable wheel is tagged before it is built
        with _as_setup_error():
            platform, found = platform_tag(sorted({*built, *folder.rglob("*.so")}))
        for note in notes_of(found):
            build.announce(f"dso-packer: {note}", logging.WARNING)
        return python, abi, platform
