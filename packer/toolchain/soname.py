"""The SONAME of a library: the name by which other binaries need it (gABI, Dynamic Section)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError, ToolchainError

from ..files.text import path_error

if TYPE_CHECKING:
    from .formats import OutputFormat

_MAX_NBYTES = 255  # of a file's name


def soname_options(
    soname: str | None, output: str | os.PathLike[str], output_format: OutputFormat
) -> list[str]:
    """Return the options for a linker driver that set the SONAME; none without one.

    Raises ExportError if it is not the name of a file, or if the output is not linked.
    """
    if soname is None:
        return []
    if not output_format.is_linked:
        text = f"soname {soname!r} is for shared libraries, found .{output_format.suffix}"
        raise path_error(output, f"{text}; drop it, or give it to packer link")
    if not is_file_name(soname):
        text = f"soname: expected the name of a file, as 'libmodel.so.1', found {soname!r}"
        raise ExportError(text)
    return ["-Xlinker", "-soname", "-Xlinker", soname]


def verify_soname(library: Path, soname: str | None) -> None:
    """Check that a linker set the SONAME.

    Raises ToolchainError if it did not.
    """
    if soname is None:
        return
    from ..elf.dynamic import read_dynamic  # slow to import

    found = read_dynamic(library).linkage().soname
    if found != soname:
        text = f"the linker exited with 0, but its output is wrong: SONAME {found!r}"
        raise ToolchainError(f"{text}, expected {soname!r}; it ignored the option -soname")


def is_file_name(text: str) -> bool:
    """Return True for printable ASCII without spaces and slashes that begins with no option's -."""
    is_plain = text.isascii() and text.isprintable() and not {" ", "/"}.intersection(text)
    return is_plain and text not in ("", ".", "..") and text[0] != "-" and len(text) <= _MAX_NBYTES
