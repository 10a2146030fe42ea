"""The formats of outputs, by the output's suffix.

.so, any other    a shared library
.o                one object, to be linked later
.a                an archive with that one object, so that a linker takes all of it or nothing
.tar              the objects, and the options for their link

The modules for the last three are imported on use: most exports write a library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from runtime.error import ExportError, ToolchainError

from ..elf.archive import write_archive
from ..elf.object_file import ObjectFile
from ..files.arguments import list_of, one_or_more
from ..files.text import path_error, shown_path
from .compiler import LANGUAGE_OF_SUFFIX
from .create import as_fcompile, create_object, create_shared, making
from .verify import check_linked

if TYPE_CHECKING:
    from ..files.arguments import PathLike
    from .create import Cc
    from .link_input import LinkInput
    from .linker import Fcompile, Linker


class Made(Protocol):
    """An output that was read back."""

    def symbol(self, name: str) -> tuple[int | None, int] | None:
        """Return the (file offset, nbytes) of a symbol that it defines, or None."""


class OutputFormat(NamedTuple):
    """One format of outputs."""

    suffix: str  # without the dot
    create: Fcompile  # makes it of objects
    # ``(path, triple)`` reads an output, and checks its format and target.
    read_back: Callable[[Path, str | None], Made]
    is_linked: bool = False  # True if it can be loaded; then the file is executable


@as_fcompile("a")
def create_archive(
    output: PathLike,
    objects: PathLike | Sequence[PathLike],
    options: Sequence[str] | None = None,
    cc: Cc = None,
) -> None:
    """Merge objects to one object, and put it into a static library.

    Parameters
    ----------
    output, objects, options, cc
        As for `create_object`.

    Raises
    ------
    ToolchainError, ExportError
        As for `create_object`.
    """
    with making(output) as (folder, made):
        merged = folder / "lib.o"
        create_object(merged, objects, options, cc)
        write_archive(made, merged, ObjectFile(merged).definitions)


@as_fcompile("tar")
def tar(
    output: PathLike,
    objects: PathLike | Sequence[PathLike],
    options: Sequence[str] | None = None,
    cc: Cc = None,
) -> None:
    """Put objects in a tar, for ``packer link`` on another machine.

    Parameters
    ----------
    output : path
        The tar; the same objects give the same bytes.
    objects : path or sequence of paths
        Objects and archives, in link order; sources become objects first.
    options : sequence of str, optional
        Recorded for the link, and used for sources.
    cc : str, optional
        As in `find_compiler`.

    Raises
    ------
    ToolchainError
        If a source does not compile.
    ExportError
        If two files have the same name, one is a shared library, or the folder cannot be written.
    """
    from .tarball import write_tarball

    listed, words = one_or_more(objects, "objects"), list_of(options, "options")
    with making(output) as (folder, made):
        files = [_as_object(Path(item).absolute(), folder, words, cc) for item in listed]
        write_tarball(made, files, words)


def _as_object(path: Path, folder: Path, options: Sequence[str] | None, cc: Cc) -> Path:
    if path.suffix not in LANGUAGE_OF_SUFFIX:
        return path
    made = folder / f"{path.stem}.o"
    create_object(made, path, options, cc)
    return made


def _reader_of(suffix: str) -> Callable[[Path, str | None], LinkInput]:
    def read_back(path: Path, triple: str | None) -> LinkInput:
        from .link_input import LinkInput

        try:
            made = LinkInput(path, suffix)
            made.check_machine(triple)
        except ExportError as error:
            what = error.message.removeprefix(f"{shown_path(path)}: ")
            text = f"the linker exited with 0, but its output is wrong: {what}"
            raise ToolchainError(text) from error
        return made

    return read_back


FORMATS = {
    row.suffix: row
    for row in (
        OutputFormat("so", create_shared, check_linked, is_linked=True),
        OutputFormat("o", create_object, _reader_of("o")),
        OutputFormat("a", create_archive, _reader_of("a")),
        OutputFormat("tar", tar, _reader_of("tar")),
    )
}


def format_of(path: str | os.PathLike[str], linker: Linker | None = None) -> OutputFormat:
    """Return the format that the suffix of an output names, or else that of its linker.

    Raises ExportError if the linker makes another format.
    """
    name = os.fsdecode(path)
    suffix = Path(name).suffix.removeprefix(".")
    made = (linker.output_format if linker else "") or suffix
    if suffix in FORMATS and made in FORMATS and made != suffix:
        text = f"fcompile makes {made!r}, expected {suffix!r} for this name"
        raise path_error(name, text)
    return FORMATS.get(suffix) or FORMATS.get(made) or FORMATS["so"]
