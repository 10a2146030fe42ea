"""The weights of a model as a safetensors file: each once, where operators can read it in place.

The file has no name and is written part by part, since the weights may be larger than the memory:
each is read twice, for its digest and for its bytes.

The data area begins at a multiple of 64 bytes. Tensors follow each other without holes, so those
whose size is a multiple of 64 come first, then multiples of 32, and so on: each begins at a
multiple of the largest power of two in its size, up to 64.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from tempfile import TemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING
from weakref import finalize

import numpy as np

from packer.files.text import path_error
from runtime import SafetensorsModule
from runtime.tensors.dtype import string_to_dtype
from runtime.tensors.safetensors_file import DTYPES, METADATA_KEY

from .dtypes import dtype_name
from .lower.packing import PackedTensor
from .operator import shape_of

if TYPE_CHECKING:
    import onnx_ir as ir

_ALIGNMENT = 64
_NAMES = {code: name for name, code in DTYPES.items()}


class Weights:
    """The weights that operators read.

    Attributes
    ----------
    names : dict of ir.Value to str
        The name under which each is stored.
    equal : dict of str to str
        For each weight that is not stored, since it equals another one, the name of that.
    """

    def __init__(self) -> None:
        self.names: dict[ir.Value, str] = {}
        self.equal: dict[str, str] = {}
        self._stored: dict[str, tuple[str, list[int], int, ir.TensorProtocol]] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def add(self, value: ir.Value) -> None:
        """Add an initialiser, unless it was added."""
        if value in self.names:
            return
        assert value.const_value is not None  # an initialiser that `read` has checked
        digest, nbytes = blake2b(digest_size=16), 0
        for part in _parts(value.const_value):
            digest.update(part)
            nbytes += len(part)
        dtype, shape = _stored_form(value, nbytes)
        key = (dtype, tuple(shape), digest.digest())
        own = str(value.name)
        if key in self._known:
            self.names[value] = self._known[key]
            if own != self._known[key] and own not in self._stored:
                self.equal[own] = self._known[key]
            return
        name, number = own, 1
        while name in self._stored or name == METADATA_KEY:
            number += 1
            name = f"{own}#{number}"
        self._known[key] = self.names[value] = name
        self._stored[name] = (dtype, shape, nbytes, value.const_value)

    def stored(self) -> set[str]:
        """Return the names of the tensors in the file."""
        return set(self._stored)

    def module(self, metadata: Mapping[str, str]) -> SafetensorsModule:
        """Return the module of a file with these weights and metadata, which it owns.

        Raises ExportError if the folder of temporary files has no room.
        """
        try:
            file = TemporaryFile()  # noqa: SIM115 - the module closes it
            self._write(file, metadata)
            file.flush()
        except OSError as error:
            text = f"cannot write the weights there: {error.strerror or error}; set TMPDIR to a"
            raise path_error(gettempdir(), f"{text} folder with room for the model") from error
        module = SafetensorsModule(f"/proc/self/fd/{file.fileno()}")
        finalize(module, file.close)
        return module

    def _write(self, file: IO[bytes], metadata: Mapping[str, str]) -> None:
        order = sorted(self._stored, key=lambda name: -_granule(self._stored[name][2]))
        header: dict[str, object] = {METADATA_KEY: dict(metadata)}
        offset = 0
        for name in order:
            dtype, shape, nbytes, _ = self._stored[name]
            end = offset + nbytes
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % _ALIGNMENT)
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            for part in _parts(self._stored[name][3]):
                file.write(part)


def _parts(tensor: ir.TensorProtocol) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a tensor; parts of a packed one as they are made."""
    if tensor.dtype.bitwidth < 8:
        yield tensor.tobytes()
        return
    for array in tensor.parts() if isinstance(tensor, PackedTensor) else [tensor.numpy()]:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _granule(nbytes: int) -> int:
    """Return the largest power of two, up to 64, of which a size is a multiple."""
    return min(nbytes & -nbytes, _ALIGNMENT) if nbytes else _ALIGNMENT


def _stored_form(value: ir.Value, nbytes: int) -> tuple[str, list[int]]:
    """Return the format's data type and shape; types that it lacks are bytes."""
    name = _NAMES.get(string_to_dtype(dtype_name(value)))
    if name is None:
        return "U8", [nbytes]
    return name, [int(extent) for extent in shape_of(value)]
