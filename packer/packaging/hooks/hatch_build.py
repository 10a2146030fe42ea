"""The hook of hatch: `[tool.hatch.build.hooks.dso-packer]`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from runtime.error import PackerError

from .libraries import Library, export, libraries_of, notes_of, platform_tag

WHERE = "tool.hatch.build.hooks.dso-packer.libraries"


class LibrariesHook(BuildHookInterface):
    """Exports the libraries of a project into its wheel, and tags the wheel."""

    PLUGIN_NAME = "dso-packer"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Export before a wheel is built; an sdist has the sources alone."""
        self._folder: Path | None = None
        if self.target_name != "wheel":
            return
        try:
            libraries = libraries_of(self.config.get("libraries"), WHERE, Path(self.root))
            paths = self._export(libraries, is_editable=version == "editable")
            tag, platform = platform_tag(list(paths.values()))
        except PackerError as error:
            self._remove()
            self.app.abort(f"dso-packer: {error}")
            return
        for note in notes_of(platform):
            self.app.display_warning(f"dso-packer: {note}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
        if version != "editable":
            included = {str(path): name for name, path in paths.items()}
            build_data["force_include"].update(included)

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove what was built beside the project."""
        self._remove()

    def clean(self, _versions: list[str]) -> None:
        """Remove what editable installs wrote into the source tree."""
        for library in libraries_of(self.config.get("libraries"), WHERE, Path(self.root)):
            self._in_source(library).unlink(missing_ok=True)

    def _export(self, libraries: tuple[Library, ...], *, is_editable: bool) -> dict[str, Path]:
        """Export each library, and return its file by its path in the wheel."""
        if not is_editable:
            self._folder = Path(tempfile.mkdtemp(prefix="dso-packer-"))
        paths: dict[str, Path] = {}
        for library in libraries:
            path = self._folder / library.name if self._folder else self._in_source(library)
            export(library, path)
            paths[library.name] = path
        return paths

    def _in_source(self, library: Library) -> Path:
        """Return the path of a library in the source tree, which may have a folder src."""
        root = Path(self.root)
        for source, target in (*self.build_config.sources.items(), ("", "")):
            if library.name.startswith(target):
                path: Path = root / source / library.name.removeprefix(target)
                if path.parent.is_dir():
                    return path
        return root / library.name

    def _remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


@hookimpl  # type: ignore[untyped-decorator]
def hatch_register_build_hook() -> type[LibrariesHook]:
    """Register the hook under its name."""
    return LibrariesHook
