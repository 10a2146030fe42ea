"""Read .npy files; numpy is imported only for that."""

from __future__ import annotations

import os
from typing import Any

from ..files.text import path_error
from .inputs import check_regular_file


def read_array(path: str | os.PathLike[str]) -> Any:
    """Read a .npy file as a row-major array in the byte order of this machine."""
    check_regular_file(path)
    try:
        import numpy
    except ImportError as error:
        raise path_error(path, "reading it needs numpy: pip install numpy") from error
    try:
        with open(path, "rb") as file:
            array = numpy.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # numpy's parser raises errors of tokenize too, and others
        raise path_error(path, f"cannot be read as a .npy array: {error}") from error
    return numpy.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
