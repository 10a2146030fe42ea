"""Tensors of a model: whether their data fits their shape, and where it is.

Data outside the model's file is mapped, and only from files in the model's folder.
"""

from __future__ import annotations

import mmap
import os
import stat
from math import prod
from typing import TYPE_CHECKING, Any

from runtime.error import shown

from .outside import Outside
from .words import refusal, shape_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx_ir as ir

MOST_ELEMENTS = (1 << 31) - 1  # of one tensor
MOST_AXES = 32
_STRING, _COMPLEX64, _COMPLEX128 = 8, 14, 15
_EXTERNAL = 1  # TensorProto.data_location
# The bits of an element, by TensorProto.data_type.
BITS = {
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((7, 11, 13, _COMPLEX64), 64),
    _COMPLEX128: 128,
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((25, 26), 2),
}
# The field of typed data; all others use int32_data.
_TYPED = {
    1: "float_data",
    7: "int64_data",
    11: "double_data",
    12: "uint64_data",
    13: "uint64_data",
    _COMPLEX64: "float_data",
    _COMPLEX128: "double_data",
}

_OTHER_TYPES = {
    "sequence_type": "a sequence",
    "optional_type": "an optional",
    "map_type": "a map",
    "sparse_tensor_type": "a sparse tensor",
    "opaque_type": "an opaque value",
}


class Tensors:
    """The tensors of one model.

    Parameters
    ----------
    source : str
        What messages call the model.
    path : path, optional
        The model's file; without it, data in other files is refused.
    outside : mapping of str to Outside
        The data that was taken out of the model, by its location.
    """

    def __init__(
        self, source: str, path: str | os.PathLike[str] | None, outside: Mapping[str, Outside]
    ) -> None:
        self.source = source
        self._path = path
        self._outside = outside
        self._mapped: dict[str, mmap.mmap] = {}

    def check(self, tensor: Any, where: str) -> None:
        """Check type, shape and size of a TensorProto, without reading its data.

        Raises ExportError if the data is missing, of another size, or outside the model's folder.
        """
        check_dtype(tensor.data_type, self.source, where)
        check_extents(tensor.dims, self.source, where)
        if tensor.HasField("segment"):
            raise refusal(self.source, f"{where}: a segment of a tensor; store the tensor whole")
        outside = self._outside_of(tensor)
        if tensor.data_location == _EXTERNAL and outside is None:
            self._place(tensor, where)
            return
        expected, found, unit = _sizes(tensor, outside)
        if expected != found:
            raise refusal(
                self.source,
                f"{where}: shape {shape_text(tensor.dims)}, expected {expected:,} {unit},"
                f" found {found:,}",
            )

    def read(self, tensor: Any, where: str) -> ir.TensorProtocol:
        """Return a checked TensorProto as a tensor that does not refer to it.

        Data outside of it is read when it is used; that in another file is mapped.
        """
        import numpy
        import onnx_ir as ir

        if tensor.data_location != _EXTERNAL:
            made: Any = ir.from_proto(tensor)
            return ir.Tensor(made.numpy(), dtype=made.dtype, name=tensor.name)
        outside = self._outside_of(tensor)
        if outside is None:
            path, offset, nbytes = self._place(tensor, where)
            data = self._map(path)[offset : offset + nbytes] if nbytes else memoryview(b"")
            outside = Outside(nbytes, lambda: data)
        dtype, shape, name = ir.DataType(tensor.data_type), tuple(tensor.dims), tensor.name
        if dtype.bitwidth < 8:
            return _unpacked(dtype, shape, name, bytes(outside.read()))

        def array() -> ir.Tensor[Any]:
            elements = numpy.frombuffer(outside.read(), dtype.numpy()).reshape(shape)
            return ir.Tensor(elements, dtype=dtype, name=name)

        return ir.LazyTensor(array, dtype, ir.Shape(shape), name=name)

    def _outside_of(self, tensor: Any) -> Outside | None:
        """Return the data that was taken out of a tensor, or None."""
        entries = [one.value for one in tensor.external_data if one.key == "location"]
        return self._outside.get(entries[-1]) if entries else None

    def _place(self, tensor: Any, where: str) -> tuple[str, int, int]:
        """Return the file of a tensor's data, the offset and the size."""
        entries = {e.key: e.value for e in tensor.external_data if isinstance(e.value, str)}
        location = entries.get("location", "")
        where = f"{where}: data in the file {shown(location)}"
        path = self._file(location, where)
        nbytes = _nbytes(tensor)
        offset = self._number(entries.get("offset", "0"), "offset", where)
        length = self._number(entries.get("length", str(nbytes)), "length", where)
        if length != nbytes:
            text = f"{where}: expected {nbytes:,} bytes for the shape, found length {length:,}"
            raise refusal(self.source, text)
        size = os.stat(path).st_size
        if offset + nbytes > size:
            text = f"{where}: expected {offset + nbytes:,} bytes, found {size:,}; the file is cut"
            raise refusal(self.source, text)
        return path, offset, nbytes

    def _file(self, location: str, where: str) -> str:
        if self._path is None:
            text = f"{where}: the model has no folder; pass its path, or load the data into it"
            raise refusal(self.source, text)
        folder = os.path.dirname(os.path.abspath(self._path))
        # A cache of downloads has the model and its data as symbolic links to one other folder.
        allowed = {os.path.realpath(folder), os.path.dirname(os.path.realpath(self._path))}
        path = "" if "\0" in location else os.path.realpath(os.path.join(folder, location))
        inside = any(path.startswith(os.path.join(one, "")) for one in allowed)
        if os.path.isabs(location) or ".." in location.split("/") or not inside:
            text = f"{where}, expected a file in the model's folder; move it there"
            raise refusal(self.source, text)
        try:
            status = os.stat(path)
        except OSError as error:
            raise refusal(self.source, f"{where}: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):
            raise refusal(self.source, f"{where}, expected a regular file")
        return path

    def _number(self, text: str, name: str, where: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 19):
            message = f"{where}: {name}, expected a number of bytes, found {shown(text)}"
            raise refusal(self.source, message)
        return int(text)

    def _map(self, path: str) -> memoryview:
        if path not in self._mapped:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                self._mapped[path] = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
            finally:
                os.close(handle)
        return memoryview(self._mapped[path])


def check_dtype(dtype: int, source: str, where: str) -> None:
    """Refuse strings, and a TensorProto.data_type that has no meaning here."""
    if dtype == _STRING:
        raise refusal(source, f"{where} is a tensor of strings; strings are unsupported")
    if dtype not in BITS:
        text = f"{where}: data type {dtype}, expected one of {min(BITS)} to {max(BITS)}"
        raise refusal(source, text)


def check_type(type_: Any, source: str, where: str) -> None:
    """Refuse a TypeProto that has no tensor of numbers, or too large ones; it may be empty.

    It may be a sequence of tensors, and an optional of a tensor or of a sequence.
    """
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        type_, kind = (
            type_.optional_type.elem_type,
            type_.optional_type.elem_type.WhichOneof("value"),
        )
        if kind == "optional_type":
            raise refusal(source, f"{where} is an optional of an optional, which is unsupported")
    if kind == "sequence_type":
        type_, kind = (
            type_.sequence_type.elem_type,
            type_.sequence_type.elem_type.WhichOneof("value"),
        )
        if kind in ("sequence_type", "optional_type"):
            raise refusal(source, f"{where} is a sequence of {_OTHER_TYPES[kind]}; unsupported")
    if kind in _OTHER_TYPES:
        raise refusal(source, f"{where} is {_OTHER_TYPES[kind]}, which is unsupported")
    if kind == "tensor_type":
        check_dtype(type_.tensor_type.elem_type, source, where)
        dims = type_.tensor_type.shape.dim
        extents = [one.dim_value if one.HasField("dim_value") else None for one in dims]
        check_extents(extents, source, where)


def check_extents(extents: Any, source: str, where: str) -> None:
    """Refuse negative extents, more than 32 axes, and more than 2^31 - 1 elements.

    Extents that are not integers are not counted.
    """
    known = [extent for extent in extents if isinstance(extent, int)]
    if len(extents) > MOST_AXES:
        text = f"{where}: {len(extents)} axes, expected at most {MOST_AXES}"
    elif any(extent < 0 for extent in known):
        text = f"{where}: shape {shape_text(extents)}, expected no negative extent"
    elif prod(known) > MOST_ELEMENTS:
        text = f"{where}: shape {shape_text(extents)} has {prod(known):,} elements, expected at"
        text += f" most {MOST_ELEMENTS:,}"
    else:
        return
    raise refusal(source, text)


def _nbytes(tensor: Any) -> int:
    count: int = prod(tensor.dims)
    return (count * BITS[tensor.data_type] + 7) // 8


def _unpacked(dtype: ir.DataType, shape: tuple[int, ...], name: str, data: bytes) -> ir.Tensor[Any]:
    """Return a tensor whose elements share bytes in its data."""
    import onnx
    import onnx_ir as ir

    plain = onnx.TensorProto(data_type=int(dtype), dims=shape, raw_data=data)
    return ir.Tensor(ir.from_proto(plain).numpy(), dtype=dtype, name=name)


def _sizes(tensor: Any, outside: Outside | None) -> tuple[int, int, str]:
    """Return the size that a tensor must have, that it has, and the unit."""
    if outside is not None:
        return _nbytes(tensor), outside.nbytes, "bytes of raw_data"
    if tensor.HasField("raw_data"):
        return _nbytes(tensor), len(tensor.raw_data), "bytes of raw_data"
    name = _TYPED.get(tensor.data_type, "int32_data")
    count = prod(tensor.dims) * (2 if tensor.data_type in (_COMPLEX64, _COMPLEX128) else 1)
    packed = (count * min(BITS[tensor.data_type], 8) + 7) // 8  # an element has a byte or less
    return packed, len(getattr(tensor, name)), f"elements of {name}"
