"""safetensors: a file of weights, unchanged (TVM has no such type).

u64 npad, npad zeros    npad < 4096; aligns the file's data area to 64 bytes from the start of the
                        blob's symbol, and a large file to a page if both are possible, so that the
                        kernel can copy it or share its blocks
the file                its header contains its length (runtime/tensors/safetensors_file.py)
"""

from __future__ import annotations

import os

from ..abi import BINARY_SERIALIZABLE, HEADER_NBYTES
from ..module import Module
from ..tensors.safetensors_file import (
    SafetensorsFile,
    open_safetensors,
    parse_safetensors,
    read_safetensors,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..graph.model_record import ModelRecord
    from ..serial.stream import Reader, Writer
    from ..tensors.tensor import Tensor

ALIGNMENT = 64
PAGE = 4096
# For files of this size a page of padding costs little.
LARGE = 1 << 20


class SafetensorsModule(Module):
    """The weights of one safetensors file.

    Parameters
    ----------
    source : path or buffer
        The file (str or PathLike): mapped, and copied from disk into the library, never read into
        memory. Or its bytes: kept alive, not copied.

    Attributes
    ----------
    metadata : dict
        The file's ``__metadata__``; that of the library too, if this is its root.

    Raises
    ------
    ExportError
        The file cannot be read or breaks the format; names it.
    BlobFormatError
        The bytes break the format.

    Notes
    -----
    `weights` are read-only views of the file or of the library that carries it: nothing is copied,
    and processes share the memory. They remain valid after the module is freed. Never overwrite
    the file in place while it is used.

    Examples
    --------
    >>> header = b'{"w": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}}'
    >>> data = len(header).to_bytes(8, "little") + header + bytes([1, 0, 2, 0])
    >>> module = SafetensorsModule(data)
    >>> module.weights["w"], memoryview(module.weights["w"]).tolist()
    (<Tensor int16[2] on cpu>, [1, 2])
    """

    type_key = "safetensors"
    property_mask = BINARY_SERIALIZABLE

    def __init__(
        self, source: str | os.PathLike[str] | bytes | bytearray | memoryview | SafetensorsFile
    ) -> None:
        if isinstance(source, str | os.PathLike):
            source = open_safetensors(source)
        elif not isinstance(source, SafetensorsFile):
            source = parse_safetensors(source)
        self._file = source

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's ``__metadata__``; a copy. That of the library too, if this is its root."""
        return {**self._file.metadata, **super().metadata}

    @property
    def own_record(self) -> ModelRecord | None:
        """The record ``dso.graph`` in the file's metadata; BlobFormatError if it is malformed."""
        return self._file.record

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The tensors of the file, in the order of its header."""
        return self._file.tensors

    def save_to_binary(self, writer: Writer) -> None:
        """Write the padding, then the file."""
        offset, data = HEADER_NBYTES + writer.offset + 8, self._file.data_offset
        npad = -(offset + data) % ALIGNMENT
        if data % ALIGNMENT == 0 and self._file.nbytes >= LARGE:
            npad = -offset % PAGE
        writer.write_u64(npad)
        writer.write_raw(bytes(npad))
        self._file.write(writer)


def decode(reader: Reader, type_key: str) -> SafetensorsModule:
    """Read the payload that `SafetensorsModule.save_to_binary` writes."""
    del type_key
    reader.read_raw(reader.read_u64())
    return SafetensorsModule(read_safetensors(reader))
