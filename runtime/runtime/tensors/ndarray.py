"""NDArray on the wire; the core reads it.

    u64 magic 0xDD5E40F096B4A13F, u64 reserved 0, i32 device_type (1 = cpu), i32 device_id (0),
    i32 ndim, DLDataType dtype, ndim x i64 shape, i64 data_byte_size, data

data_byte_size = prod(shape) * ceil(bits / 8) * lanes. Old versions of TVM left out the lanes, so
their arrays with lanes are too short. A tensor packs elements of less than a byte, while TVM writes
each in a byte. Data of another size than the tensor's is carried unchanged; using that tensor
raises.
"""

from __future__ import annotations

from ..abi import DEVICE_CPU
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..serial.stream import Reader, Writer

NDARRAY_MAGIC = 0xDD5E40F096B4A13F


def read_ndarray(reader: Reader) -> Tensor:
    """Read an NDArray as a read-only tensor that views the blob."""
    data, shape, dtype, is_complete = reader._read_ndarray()
    return Tensor(data, shape, dtype, incomplete=not is_complete)


def write_ndarray(writer: Writer, array: Tensor) -> None:
    """Write an NDArray; the tensor's bytes are not copied."""
    writer.write_u64(NDARRAY_MAGIC)
    writer.write_u64(0)
    writer.write_i32(DEVICE_CPU)
    writer.write_i32(0)
    writer.write_i32(len(array.shape))
    writer.write_dtype(array.dtype_code)
    for extent in array.shape:
        writer.write_i64(extent)
    writer.write_i64(array.raw.nbytes)
    writer.write_raw(array.raw)


def read_arrays(reader: Reader, names: list[str]) -> dict[str, Tensor]:
    """Read one NDArray per name."""
    return {name: read_ndarray(reader) for name in names}


def read_named_arrays(reader: Reader) -> dict[str, Tensor]:
    """Read vector<string> names, u64 n, n x NDArray, which the core accepted, in wire order."""
    names = reader.read_vector(reader.read_name)
    reader.read_u64()
    return read_arrays(reader, names)


def write_named_arrays(writer: Writer, arrays: Mapping[str, Tensor]) -> None:
    """Write vector<string> names, u64 n, n x NDArray."""
    writer.write_vector(arrays, writer.write_string)
    writer.write_vector(arrays.values(), lambda array: write_ndarray(writer, array))
