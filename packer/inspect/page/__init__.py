"""write_report(library, output): a page that shows the contents of a library."""

from __future__ import annotations

import os

from ...elf.image import Image, map_file
from ...files.output import AnyPath, refuse_output_among_inputs, replacing
from .. import LibraryReport, inspect_library
from .content import describe
from .layout import lay_out
from .page import render_page

__all__ = ["write_report"]


def write_report(library: AnyPath | LibraryReport, output: str | os.PathLike[str]) -> LibraryReport:
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
        If the file is not a library, or its program headers cannot be read.
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
    refuse_output_among_inputs(output, [path])
    image = Image(map_file(path), report.path, [])
    page = render_page(describe(report, image.data, lay_out(image, report)))
    with replacing(output) as workspace:
        workspace.output.write_text(page, encoding="ascii")
        workspace.commit(is_program=False)
    return report
