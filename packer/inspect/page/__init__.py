"""write_report(library, output): a page that shows the contents of a library."""

from __future__ import annotations

import os
from contextlib import suppress

from runtime.error import ExportError

from ...elf.image import Image, map_file
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

    The library is read, never executed.

    Parameters
    ----------
    library : path or LibraryReport
        The library, or its report, whose path must name the file.
    output : path
        The page; an existing file is replaced once the new one is complete.

    Returns
    -------
    LibraryReport
        The report that the page shows.

    Raises
    ------
    LibraryLoadError
        If the file is no library, or its program headers cannot be read.
    ExportError
        If the page cannot be written, or `output` is the library itself.

    Examples
    --------
    >>> import packer
    >>> packer.write_report("model.so", "model.html").problems  # doctest: +SKIP
    ()
    """
    report = library if isinstance(library, LibraryReport) else inspect_library(library)
    path = report.path if isinstance(library, LibraryReport) else library
    _refuse_replacing(path, output)
    image = Image(map_file(path), report.path, [])
    page = render_page(describe(report, image.data, lay_out(image, report)))
    with replacing(output) as workspace:
        workspace.output.write_text(page, encoding="ascii")
        workspace.commit()
        workspace.final.chmod(workspace.final.stat().st_mode & 0o666)  # not executable
    return report


def _refuse_replacing(path: AnyPath, output: str | os.PathLike[str]) -> None:
    with suppress(OSError):  # the output does not exist yet
        if os.path.samefile(path, output):
            text = f"{shown_path(output)}: is the library; choose a different output"
            raise ExportError(text)
