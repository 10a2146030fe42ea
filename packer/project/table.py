"""A table of a TOML file, whose errors name file, table and key."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from runtime.error import ExportError, near_names

from ..files.progress import Progress, silent
from ..files.text import path_error, shown_path
from .inputs import Inputs, read_text

Value = TypeVar("Value", str, bool, list[Any], dict[str, Any])

_WILD = frozenset("*?[")


class Table:
    """One table of a TOML file; paths in it are relative to the folder of the file.

    The files that it names are added to `inputs`. `name` is such as ``"module.host"``; empty for
    the whole file.
    """

    def __init__(
        self, inputs: Inputs, path: str | os.PathLike[str], name: str, values: Mapping[str, Any]
    ) -> None:
        self._inputs = inputs
        self._path = os.fspath(path)
        self.name = name
        self._values = values

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], progress: Progress = silent) -> Table:
        """Read a whole file; an error names the line."""
        inputs = Inputs(progress)
        return cls(inputs, path, "", _parse(inputs.add(path)))

    @property
    def inputs(self) -> Inputs:
        """The files that were named until now, this one first."""
        return self._inputs

    def error(self, text: str, key: str = "") -> ExportError:
        """Make an error that names the file, this table and the key."""
        place = [shown_path(self._path)]
        if where := " ".join(filter(None, (self.name and f"[{self.name}]", key and _bare(key)))):
            place.append(where)
        return ExportError(f"{': '.join(place)}: {text}", path=self._path)

    def note(self, text: str, key: str = "") -> None:
        """Add a note, in the form of an error, to the notes of the inputs."""
        self._inputs.notes.append(self.error(text, key).message)

    def placed(self, error: Exception) -> ExportError:
        """Add the place of this table to an error that does not name a place in the file."""
        if isinstance(error, ExportError) and error.path == self._path:
            return error
        return self.error(str(error))

    def only(self, known: Collection[str]) -> None:
        """Refuse unknown keys; the error lists near names."""
        for key in self._values:
            if key not in known:
                raise self.error(f"unknown key{near_names(key, list(known))}", key)

    def text(self, key: str) -> str | None:
        """Return a string; None if the key is missing."""
        return self._value(key, str, "a string")

    def needed_text(self, key: str) -> str:
        """Return a string that is required."""
        text = self.text(key)
        if text is None:
            raise self.error("missing, expected a string", key)
        return text

    def flag(self, key: str) -> bool:
        """Return a boolean; false if the key is missing."""
        return self._value(key, bool, "true or false") or False

    def choice(self, key: str, choices: Collection[str]) -> Any:
        """Return a string, one of `choices`; None if the key is missing."""
        text = self.text(key)
        if text is None or text in choices:
            return text
        raise self.error(f"expected one of {', '.join(map(repr, choices))}, found {text!r}", key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return an array of strings; empty if the key is missing."""
        values = self._value(key, list, expected := "an array of strings") or []
        if all(isinstance(value, str) for value in values):
            return tuple(values)
        raise self.error(f"expected {expected}, found {_shown(values)}", key)

    def path_of(self, text: str) -> str:
        """Resolve a path relative to the file; as text, which keeps a slash at its end."""
        return os.path.join(os.path.dirname(self._path), text)

    def folders(self, key: str) -> tuple[str, ...]:
        """Return the folders that an array names, as written."""
        texts = self.texts(key)
        for text in texts:
            if not os.path.isdir(self.path_of(text)):
                raise self.error(f"there is no folder {text!r}", key)
        return texts

    def files(self, key: str) -> tuple[Path, ...]:
        """Return the files that an array names, and add them to the inputs.

        A pattern is the files that it matches, without those before it in the array.
        """
        texts: dict[str, None] = {}
        for text in self.texts(key):
            texts.update(dict.fromkeys(self._matches(key, text)))
        return tuple(self.file(key, text) for text in texts)

    def _matches(self, key: str, text: str) -> list[str]:
        """Return the files that a pattern matches, sorted; any other text alone."""
        if not _WILD.intersection(text) or os.path.lexists(self.path_of(text)):
            return [text]
        from glob import glob

        folder = os.path.dirname(self._path)
        found = sorted(glob(text, root_dir=folder or None, recursive=True))
        if files := [name for name in found if os.path.isfile(self.path_of(name))]:
            return files
        raise self.error(f"no file matches {text!r}", key)

    def needed_files(self, key: str) -> tuple[Path, ...]:
        """Return files as `files` does; at least one is required."""
        files = self.files(key)
        if not files:
            raise self.error("missing, expected an array of paths, one at least", key)
        return files

    def file(self, key: str, text: str) -> Path:
        """Return a file that a key names, and add it to the inputs."""
        try:
            return self._inputs.add(self.path_of(text))
        except ExportError as error:
            raise self.error(error.message, key) from error

    def table(self, key: str) -> Table:
        """Return a table of this one; empty if the key is missing."""
        values = self._value(key, dict, "a table") or {}
        name = f"{self.name}.{_bare(key)}" if self.name else _bare(key)
        return Table(self._inputs, self._path, name, values)

    def is_table(self, key: str) -> bool:
        """Return True if the value of a key is a table."""
        return isinstance(self._values.get(key), dict)

    def plain(self, key: str) -> Any:
        """Return a value of any type; None if the key is missing."""
        return self._values.get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def _value(self, key: str, type_: type[Value], expected: str) -> Value | None:
        """Return a value of one type; None if the key is missing."""
        value = self._values.get(key)
        if value is None or isinstance(value, type_):
            return value
        raise self.error(f"expected {expected}, found {_shown(value)}", key)


def _parse(path: Path) -> dict[str, Any]:
    import tomllib

    text = read_text(path, "a TOML file").removeprefix("\ufeff")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).removesuffix(")").rpartition(" (at ")
        reason = f"{place}: {what[:1].lower()}{what[1:]}"
    except ValueError as error:  # a number with more digits than Python reads, a date of year 0
        reason = str(error)[:1].lower() + str(error)[1:]
    except RecursionError:
        reason = "arrays or tables are nested too deep"
    raise path_error(path, reason)


def _bare(key: str) -> str:
    """Write a key bare if TOML allows that."""
    plain = key.isascii() and key.replace("-", "_").replace("_", "a").isalnum()
    return key if plain else repr(key)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
