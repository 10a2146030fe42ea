"""The object cache: a source that was compiled before, with equal inputs, is not compiled again.

An entry of the first kind is found by the compiler, the options and the text of the source. It
lists the headers that the source needs (`inputs.py`). These, as they are now, and the first key are
the key of an entry of the second kind: what the compiler printed, and the object. So a hit runs no
program.

Everything that is not understood is compiled as without a cache: other compilers, options with
unknown effects, a folder that is not the user's own. docs/compiling.md describes it for users.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

from ..process import Completed
from .compiler import Compiler, find_out
from .folder import Folder, cache_path, digest_of
from .inputs import Inputs, read_dependencies
from .options import Options, read_options

_VERSION = b"dso-packer objects 1"
_PLACE = b"\x01"  # stands for the private folder in what a compiler printed
_LENGTH_NBYTES = 8
# A source has further lists of headers if it asks which ones there are, or finds others first.
_MAX_TEXTS, _BETWEEN = 4, "\0"


class Command(NamedTuple):
    """One compilation as the cache sees it."""

    words: list[str]
    # The same, as it is in a private folder and start folder whose names are always the same.
    neutral: list[str]
    compiler: tuple[str, ...]  # the first words, which name the compiler
    # The words that packer or the user added to choose what is compiled how.
    options: tuple[str, ...]
    language: str  # the value of ``-x``
    source: str  # the source, as the command spells it
    output: Path  # the object


class Missing(NamedTuple):
    """A compilation whose object is not in the cache, and that can be stored there."""

    command: Command
    key: str  # the key of the list of its headers
    options: Options
    compiler: Compiler

    @property
    def dependencies(self) -> Path:
        """The file to which the compiler writes the names of the headers."""
        return self.command.output.with_name(f".{self.command.output.name}.d")

    @property
    def words(self) -> list[str]:
        """The command, which also writes the names of the headers."""
        return [*self.command.words, "-MD", "-MT", "o", "-MF", os.fspath(self.dependencies)]


class ObjectCache:
    """The cache during one step of an export. No function of it fails.

    Compilers start in the folder `start`; `private` is the private folder, as commands spell it.
    """

    def __init__(self, start: Path, private: str) -> None:
        self._start, self._private = start, private
        self._started_ns = time.time_ns()
        self._inputs = Inputs(start, private)
        self._compilers: dict[tuple[str, ...], Compiler | None] = {}
        self._folder: Folder | None = None
        has_name = private != "."  # else no text of it could be replaced in printed warnings
        if has_name and (path := cache_path()) is not None:
            with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the path
                self._folder = Folder(path)

    def close(self) -> None:
        """Remove entries that are over the limit, and close the folder."""
        if self._folder is not None:
            self._folder.trim()
            self._folder.close()
            self._folder = None

    def find(self, command: Command) -> str | Missing | None:
        """Write the object of a compilation from the cache, and return what the compiler printed.

        Return `Missing` if there is no such entry; None if the compilation cannot have one.
        """
        if self._folder is None or (missing := self._key(command)) is None:
            return None
        folder = self._folder
        keys = (self._object_key(missing.key, text) for text in _texts(folder, missing.key))
        entry = next(filter(None, (folder.read(key) for key in keys if key)), None)
        if entry is None:
            return missing
        end = _LENGTH_NBYTES + int.from_bytes(entry[:_LENGTH_NBYTES], "little")
        command.output.write_bytes(entry[end:])
        printed = entry[_LENGTH_NBYTES:end].replace(_PLACE, os.fsencode(self._private))
        return printed.decode(errors="surrogateescape")

    def store(self, missing: Missing, completed: Completed) -> None:
        """Store the object of a compilation that has ended, unless the compiler failed."""
        with contextlib.suppress(OSError):
            listed = missing.dependencies.read_bytes()
            missing.dependencies.unlink()
            if completed.returncode == 0 and self._folder is not None:
                self._store(self._folder, missing, os.fsdecode(listed), completed.output)

    def _store(self, folder: Folder, missing: Missing, listed: str, printed: str) -> None:
        source, made = missing.command.source, missing.command.output.read_bytes()
        options, read = missing.options, read_dependencies(listed)
        folders = (*options.folders, *missing.compiler.folders)
        text = self._inputs.describe(source, read, options.forced, folders)
        if text is None or not made or self._names_folders(made, options):
            return
        key = self._object_key(missing.key, text)
        if key is None or not self._inputs.unchanged_since(text, self._started_ns):
            return
        said = os.fsencode(printed).replace(os.fsencode(self._private), _PLACE)
        entry = len(said).to_bytes(_LENGTH_NBYTES, "little") + said + made
        folder.write(key, entry)
        texts = dict.fromkeys([text, *_texts(folder, missing.key)])
        folder.write(missing.key, os.fsencode(_BETWEEN.join([*texts][:_MAX_TEXTS])))

    def _key(self, command: Command) -> Missing | None:
        assert self._folder is not None
        options = read_options([*command.compiler[1:], *command.options])
        if options is None or (compiler := self._compiler(command, options)) is None:
            return None
        words = [*command.neutral]
        if options.names_folders:
            words = [*command.words, os.fspath(self._start), os.fspath(command.output)]
        try:
            text = Path(self._start, command.source).read_bytes()
        except OSError:
            return None
        parts = [_VERSION, os.fsencode(compiler.identity), *map(os.fsencode, words[1:]), text]
        return Missing(command, digest_of(*parts), options, compiler)

    def _compiler(self, command: Command, options: Options) -> Compiler | None:
        assert self._folder is not None
        asked = (command.compiler[0], "-x", command.language)
        key = (*asked, *options.searching)
        if key not in self._compilers:
            self._compilers[key] = find_out(
                asked,
                options.searching,
                is_native=options.is_native,
                start=self._start,
                folder=self._folder,
            )
        return self._compilers[key]

    def _object_key(self, key: str, text: str) -> str | None:
        """Return the key of an object; None if a file that it needs is missing."""
        state = self._inputs.state(text)
        return state and digest_of(b"object", key.encode(), os.fsencode(text), state.encode())

    def _names_folders(self, made: bytes, options: Options) -> bool:
        """Return True if an object contains a name of a folder that its key leaves out."""
        if options.names_folders:
            return False
        private = os.path.basename(self._private)
        names = [os.fsencode(private), os.fsencode(self._start)]
        return any(len(name) > 1 and name in made for name in names)


def _texts(folder: Folder, key: str) -> list[str]:
    """Return what compilations with a key have read, the latest one first."""
    data = folder.read(key)
    return os.fsdecode(data).split(_BETWEEN) if data else []
