"""The params dict file: parameters by name, stored apart from the graph that takes them.

u64 magic 0xF7E58D4F05049CB7, u64 reserved 0, vector<string> names, u64 n, n x NDArray
"""

from __future__ import annotations

from .._core import Reader
from ..serial.stream import Writer, read_chunk
from .ndarray import read_named_arrays, write_named_arrays
from .tensor import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from ..serial.stream import Chunk
    from .tensor import Tensor

PARAMS_MAGIC = 0xF7E58D4F05049CB7


def load_param_dict(
    data: bytes | bytearray | memoryview, *, path: str | None = None
) -> dict[str, Tensor]:
    """Read the bytes of a params dict file (TVM's ``.params``).

    Parameters
    ----------
    data : buffer
        The file's bytes; the tensors view them.
    path : str, optional
        The file, for messages.

    Raises
    ------
    BlobFormatError
        The bytes are not a params dict file.
    """
    reader = Reader(data, path=path, where="params")
    part = reader.accepted("params")
    part.read_u64(), part.read_u64()  # the magic number, and a reserved one
    return read_named_arrays(part)


parse_params = load_param_dict  # its name in 0.1.0


def dump_params(params: Mapping[str, Any]) -> list[Chunk]:
    """Write a params dict file as chunks; the parameters are not copied."""
    writer = Writer()
    writer.write_u64(PARAMS_MAGIC)
    writer.write_u64(0)
    write_named_arrays(writer, {name: tensor(array) for name, array in params.items()})
    return writer.finish()


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
    return b"".join(map(read_chunk, dump_params(params)))


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
        file.writelines(map(read_chunk, chunks))


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a params dict file; the tensors view its mapped pages.

    Raises
    ------
    BlobFormatError
        It is not a params dict file.
    OSError
        It cannot be read.
    """
    import os

    from ..serial.mapped_file import map_file

    return load_param_dict(map_file(path)[0], path=os.fspath(path))
