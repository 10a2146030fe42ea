"""Read the bill of materials of a library, which is not run."""

from __future__ import annotations

import os
from typing import Any

from runtime._core import ElfFile
from runtime.abi import ANY_MACHINE, SBOM
from runtime.error import BlobFormatError
from runtime.serial.strict_json import parse_json

from ...files.text import path_error

MAX_NBYTES = 64 << 20


def read_sbom(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the document.

    Raises LibraryLoadError if the file is not a library. Raises ExportError if the library has no
    bill of materials. Raises BlobFormatError if the bill is damaged.
    """
    name = os.fspath(path)
    data = ElfFile(name, ANY_MACHINE).view(SBOM)
    if data is None:
        raise path_error(name, "has no bill of materials; export it with --sbom")
    text = bytes(data)
    try:
        found = parse_json(text.removesuffix(b"\0")) if len(text) <= MAX_NBYTES else None
    except ValueError as error:
        what = f"{name}: {SBOM} at 0x0: {error}; export the library again"
        raise BlobFormatError(what, path=name, offset=0) from error
    if not isinstance(found, dict) or found.get("bomFormat") != "CycloneDX":
        what = f"{name}: {SBOM} at 0x0: expected a CycloneDX document; export the library again"
        raise BlobFormatError(what, path=name, offset=0)
    return found
