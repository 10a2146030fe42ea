"""Params dict files as TVM has them: parameters by name, apart from the graph that takes them."""

from __future__ import annotations

from ..stream import FileRange
from .ndarray import dump_params, parse_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from .tensor import Tensor


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """Write parameters as the bytes of a params dict file.

    Parameters
    ----------
    params : mapping of str to Tensor or buffer
        In the order in which they are written.

    Returns
    -------
    bytes
        For `load_param_dict`, `GraphExecutor.load_params`, or TVM.

    Raises
    ------
    TypeError, ValueError
        An array has no data type that can be written, or is not contiguous.
    """
    return b"".join(
        chunk.read() if isinstance(chunk, FileRange) else chunk for chunk in dump_params(params)
    )


def load_param_dict(data: bytes | bytearray | memoryview) -> dict[str, Tensor]:
    """Read the bytes of a params dict file; the tensors view them.

    Raises
    ------
    BlobFormatError
        The bytes are no params dict.
    """
    return parse_params(data)


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a params dict file.

    Raises
    ------
    TypeError, ValueError
        An array has no data type that can be written, or is not contiguous.
    OSError
        The file cannot be written.
    """
    chunks = dump_params(params)
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk.read() if isinstance(chunk, FileRange) else chunk)


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a params dict file; the tensors view its mapped pages.

    Raises
    ------
    BlobFormatError
        It is no params dict file.
    OSError
        It cannot be read.
    """
    import os
    from mmap import ACCESS_READ, mmap

    with open(path, "rb") as file:
        nbytes = os.fstat(file.fileno()).st_size
        data = mmap(file.fileno(), nbytes, access=ACCESS_READ) if nbytes else b""
    return parse_params(memoryview(data), path=os.fspath(path))
