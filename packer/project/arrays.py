"""Arrays from ..npy files; numpy is imported only when there is one."""

from __future__ import annotations

import os
from typing import Any

from runtime.error import ExportError

from ..files.text import shown_path
from .inputs import check_regular_file


def read_array(path: str | os.PathLike[str]) -> Any:
    """Read one array.

    Parameters
    ----------
    path : path
        A .npy file.

    Returns
    -------
    numpy.ndarray
        Row-major, in this machine's byte order; a copy in memory.

    Raises
    ------
    ExportError
        numpy is not installed, or the file holds no plain array.
    """
    check_regular_file(path)
    try:
        import numpy
    except ImportError as error:
        text = f"{shown_path(path)}: reading it needs numpy: pip install numpy"
        raise ExportError(text, path=os.fspath(path)) from error
    try:
        with open(path, "rb") as file:
            array = numpy.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # numpy's parser lets those of tokenize through, and others
        text = f"{shown_path(path)}: cannot be read as a .npy array: {error}"
        raise ExportError(text, path=os.fspath(path)) from error
    return numpy.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
