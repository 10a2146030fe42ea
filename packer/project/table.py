"""A table of a TOML file that knows its place, so that every mistake names file, table and key."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runtime.error import ExportError, near_names

from ..files.text import shown_path
from .inputs import Inputs


class Table:
    """One table.

    Parameters
    ----------
    inputs : Inputs
        Where the files that the table names are added.
    path : path
        The TOML file; paths in it are relative to its folder.
    name : str
        The table's name as the file writes it, ``"module.host"``; empty for the whole file.
    values : mapping
        What the parser made of it.
    """

    def __init__(
        self, inputs: Inputs, path: str | os.PathLike[str], name: str, values: Mapping[str, Any]
    ) -> None:
        self._inputs = inputs
        self._path = os.fspath(path)
        self._name = name
        self._values = values

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Table:
        """Read a whole file.

        Raises
        ------
        ExportError
            It cannot be read, or is no TOML; says the line.
        """
        inputs = Inputs()
        return cls(inputs, path, "", _parse(inputs.add(path)))

    @property
    def inputs(self) -> Inputs:
        """The files that were named so far, this one first."""
        return self._inputs

    def error(self, text: str, key: str = "") -> ExportError:
        """Make the error that says where in the file something is wrong."""
        place = [shown_path(self._path)]
        if where := " ".join(filter(None, (self._name and f"[{self._name}]", key and _bare(key)))):
            place.append(where)
        return ExportError(f"{': '.join(place)}: {text}", path=self._path)

    def placed(self, error: Exception) -> ExportError:
        """Put this table's place before the text of an error that does not say any yet."""
        if isinstance(error, ExportError) and error.path == self._path:
            return error
        return self.error(str(error))

    def only(self, known: Collection[str]) -> None:
        """Refuse every key that is not known.

        Raises
        ------
        ExportError
            There is one; near names are listed.
        """
        for key in self._values:
            if key not in known:
                raise self.error(f"unknown key{near_names(key, list(known))}", key)

    def text(self, key: str) -> str | None:
        """Return a string, or None where there is none."""
        value = self._values.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.error(f"expected a string, found {_shown(value)}", key)

    def needed_text(self, key: str) -> str:
        """Return a string that must be there."""
        text = self.text(key)
        if text is None:
            raise self.error("missing, expected a string", key)
        return text

    def flag(self, key: str) -> bool:
        """Return true or false; false where there is none."""
        value = self._values.get(key, False)
        if isinstance(value, bool):
            return value
        raise self.error(f"expected true or false, found {_shown(value)}", key)

    def choice(self, key: str, choices: Iterable[str]) -> str | None:
        """Return a string that must be one of `choices`, or None where there is none."""
        text, known = self.text(key), list(choices)
        if text is None or text in known:
            return text
        raise self.error(f"expected one of {', '.join(map(repr, known))}, found {text!r}", key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return an array of strings; empty where there is none."""
        values = self._values.get(key, [])
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return tuple(values)
        raise self.error(f"expected an array of strings, found {_shown(values)}", key)

    def path_of(self, text: str) -> str:
        """Resolve a path of this file; as text, so that a slash at its end is not lost."""
        return os.path.join(os.path.dirname(self._path), text)

    def files(self, key: str) -> tuple[Path, ...]:
        """Return the files that an array names, each taken among the inputs."""
        return tuple(self.file(key, text) for text in self.texts(key))

    def needed_files(self, key: str) -> tuple[Path, ...]:
        """Return files as `files` does, one at least."""
        files = self.files(key)
        if not files:
            raise self.error("missing, expected an array of paths, one at least", key)
        return files

    def file(self, key: str, text: str) -> Path:
        """Return a file that a key names, taken among the inputs."""
        try:
            return self._inputs.add(self.path_of(text))
        except ExportError as error:
            raise self.error(error.message, key) from error

    def table(self, key: str) -> Table:
        """Return a table below this one; empty where there is none."""
        values = self._values.get(key, {})
        if not isinstance(values, dict):
            raise self.error(f"expected a table, found {_shown(values)}", key)
        name = f"{self._name}.{_bare(key)}" if self._name else _bare(key)
        return Table(self._inputs, self._path, name, values)

    def is_table(self, key: str) -> bool:
        """Whether a table stands behind a key."""
        return isinstance(self._values.get(key), dict)

    def read_bytes(self, path: Path) -> bytes:
        """Read a file that the table names."""
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.error(f"{shown_path(path)}: cannot be read: {error.strerror}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


def _parse(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        reason = f"byte {error.start:#x}: not UTF-8, expected a TOML file"
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).removesuffix(")").rpartition(" (at ")
        reason = f"{place}: {what[:1].lower()}{what[1:]}"
    except ValueError as error:  # a number of more digits than Python reads, a date of year 0
        reason = str(error)[:1].lower() + str(error)[1:]
    except RecursionError:
        reason = "arrays or tables are nested too deep"
    raise ExportError(f"{shown_path(path)}: {reason}", path=str(path))


def _bare(key: str) -> str:
    """Spell a key as TOML does: bare where it can be."""
    plain = key.isascii() and key.replace("-", "_").replace("_", "a").isalnum()
    return key if plain else repr(key)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
