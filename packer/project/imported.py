"""The source of an importer, as packer.toml and the command line describe it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runtime.module import Module

from ..importers import Importer, SettingType
from .inputs import Inputs
from .sources import importing
from .table import Table


class ImportedSource(NamedTuple):
    """A model or another source, and how to import it."""

    importer: Importer
    source: Path | str  # the file; or the name of a Python function, if the importer takes names
    # The values of settings, as `Setting` describes them, before `Setting.read`.
    settings: Mapping[str, Any]

    def module(self, inputs: Inputs) -> Module:
        """Import the source; a file is added to the inputs. Raises what the importer does."""
        for path in self._files():
            inputs.add(path)
        settings = dict(self.settings)
        for setting in self.importer.settings:
            if setting.read is not None and setting.name in settings:
                settings[setting.name] = setting.read(settings[setting.name])
        made = self.importer.function()(self.source, progress=inputs.progress, **settings)
        inputs.notes.extend(getattr(made, "notes", ()))
        return made

    def _files(self) -> list[Path]:
        """Return the input files: the source, or the files of a folder."""
        if not isinstance(self.source, Path):
            return []
        if not (self.importer.takes_folders and self.source.is_dir()):
            return [self.source]
        return sorted(path for path in self.source.rglob("*") if path.is_file())


def keys_of(importer: Importer) -> tuple[str, ...]:
    """Return the keys of an importer's tables: of the source, and of its settings."""
    return ("model", "sources", *(setting.name for setting in importer.settings))


def imported_module(importer: Importer, table: Table) -> Module:
    """Make the module that a table describes: of several sources the first imports the others."""
    settings = {
        setting.name: _READERS[setting.type](table, setting.name)
        for setting in importer.settings
        if table.plain(setting.name) is not None
    }
    sources = _sources(importer, table)
    names = [setting.name for setting in importer.settings if setting.type == "table"]
    if len(sources) > 1 and (chosen := [name for name in names if name in settings]):
        text = f"{chosen[0]} of several files, expected a table for each file"
        raise table.error(text, "sources")
    made = (ImportedSource(importer, source, settings) for source in sources)
    return importing([source.module(table.inputs) for source in made])


def _sources(importer: Importer, table: Table) -> list[Path | str]:
    """Read the key model, a path or the name of a function; or sources, an array of them."""
    if table.plain("model") is not None and table.plain("sources") is not None:
        raise table.error("expected it or sources, found both", "model")
    if table.plain("sources") is not None and not importer.takes_names:
        return [*table.needed_files("sources")]
    key = "sources" if table.plain("sources") is not None else "model"
    texts = table.texts(key) if key == "sources" else (table.needed_text(key),)
    return [_source(importer, table, key, text) for text in texts]


def _source(importer: Importer, table: Table, key: str, text: str) -> Path | str:
    if importer.takes_folders and (folder := Path(table.path_of(text))).is_dir():
        return folder
    if not importer.takes_names:
        return table.file(key, text)
    file, _, function = text.rpartition(":")
    return f"{table.file(key, file)}:{function}" if file.endswith(".py") else text


def _number(table: Table, key: str) -> float:
    number = table.plain(key)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number <= 0:
        raise table.error(f"expected a positive number, found {number!r}", key)
    return float(number)


def _texts_by_name(table: Table, key: str) -> dict[str, tuple[str, ...]]:
    inner = table.table(key)
    return {
        name: inner.texts(name)
        if isinstance(inner.plain(name), list)
        else (inner.needed_text(name),)
        for name in inner
    }


_READERS: Mapping[SettingType, Callable[[Table, str], Any]] = {
    "string": Table.needed_text,
    "strings": Table.texts,
    "path": lambda table, key: table.file(key, table.needed_text(key)),
    "boolean": Table.flag,
    "number": _number,
    "table": _texts_by_name,
}
