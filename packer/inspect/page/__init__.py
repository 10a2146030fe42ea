"""write_report(library, output): a page that shows what is in a library; nothing of it is run."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

from runtime.error import ExportError, LibraryLoadError

from ...elf.image import Image
from ...files.output import replacing
from ...files.text import shown_path
from .. import LibraryReport, inspect_library
from .content import describe
from .layout import lay_out
from .page import render_page

__all__ = ["write_report"]

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def write_report(
    library: AnyPath | LibraryReport,
    output: str | os.PathLike[str],
) -> LibraryReport:
    """Write a page about a library: one HTML file that needs no other file and no network.

    Parameters
    ----------
    library : path or LibraryReport
        What to look into. A report is only taken where its path names the file.
    output : path
        The page; the old file is there until the whole new one is.

    Returns
    -------
    LibraryReport
        What the page shows.

    Raises
    ------
    LibraryLoadError
        The file is no library, or its program headers cannot be read.
    ExportError
        The page cannot be written.

    Examples
    --------
    >>> import packer
    >>> packer.write_report("model.so", "model.html").problems  # doctest: +SKIP
    ()
    """
    report = library if isinstance(library, LibraryReport) else inspect_library(library)
    path = report.path if isinstance(library, LibraryReport) else library
    _refuse_replacing(path, output)
    image = Image(_map(path), report.path, [])
    page = render_page(describe(report, image.data, lay_out(image, report)))
    with replacing(output) as workspace:
        workspace.output.write_text(page, encoding="ascii")
        workspace.commit()
        workspace.final.chmod(workspace.final.stat().st_mode & 0o666)  # a page is no program
    return report


def _map(path: AnyPath) -> memoryview:
    """Map a file read-only, never executable; the view keeps the map."""
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        text = f"{shown_path(os.fsdecode(path))}: cannot map: {error}"
        raise LibraryLoadError(text, path=os.fsdecode(path), reason="io") from error


def _refuse_replacing(path: AnyPath, output: str | os.PathLike[str]) -> None:
    with suppress(OSError):  # not there yet
        if os.path.samefile(path, output):
            text = f"{shown_path(output)}: the page would replace the library: name another file"
            raise ExportError(text)
