"""NDArray on the wire; reader and writer side by side.

    u64 magic 0xDD5E40F096B4A13F, u64 reserved 0, i32 device_type (1 = cpu), i32 device_id (0),
    i32 ndim, DLDataType dtype, ndim x i64 shape, i64 data_byte_size, data

data_byte_size = prod(shape) * ceil(bits / 8) * lanes. Old versions of TVM left out the lanes, so
their arrays with lanes are too short. A tensor packs elements of less than a byte, while TVM writes
each in a byte. Data of another size than the tensor's is carried unchanged; using that tensor
raises.
"""

from __future__ import annotations

from .._core import tensor_nbytes
from ..abi import DEVICE_CPU
from .dtype import CODE_NAMES
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..serial.stream import Reader, Writer

NDARRAY_MAGIC = 0xDD5E40F096B4A13F
MAX_NDIM = 64
# magic, reserved, device, ndim, dtype, data_byte_size of an array without dimensions
MIN_NBYTES = 8 + 8 + 8 + 4 + 4 + 8


def read_ndarray(reader: Reader) -> Tensor:
    """Read an NDArray as a read-only tensor that views the blob."""
    _expect(reader, "magic", reader.read_u64, NDARRAY_MAGIC)
    _expect(reader, "reserved", reader.read_u64, 0)
    _expect(reader, "device_type", reader.read_i32, DEVICE_CPU)
    _expect(reader, "device_id", reader.read_i32, 0)
    start = reader.offset
    ndim = reader.read_i32()
    if not 0 <= ndim <= MAX_NDIM:
        raise reader.error(f"ndim {ndim}, expected 0 to {MAX_NDIM}", start)
    dtype = _read_dtype(reader)
    shape = _read_shape(reader, ndim)
    nbytes, complete = _read_data_byte_size(reader, shape, dtype)
    return Tensor(reader.read_data(nbytes, "array data"), shape, dtype, incomplete=not complete)


def _expect(reader: Reader, name: str, read: Any, expected: int) -> None:
    start = reader.offset
    found = read()
    if found != expected:
        raise reader.error(f"NDArray {name} {found:#x}, expected {expected:#x}", start)


def _read_dtype(reader: Reader) -> tuple[int, int, int]:
    start = reader.offset
    code, bits, lanes = dtype = reader.read_dtype()
    if (code not in CODE_NAMES and code != 6) or bits == 0 or bits > 128 or lanes == 0:
        raise reader.error(f"data type {dtype}, expected a known code, 1 to 128 bits, lanes", start)
    return dtype


def _read_shape(reader: Reader, ndim: int) -> tuple[int, ...]:
    start = reader.offset
    shape = tuple(reader.read_i64() for _ in range(ndim))
    if any(extent < 0 for extent in shape):
        raise reader.error(f"shape {shape}, expected extents of at least 0", start)
    return shape


def _read_data_byte_size(
    reader: Reader, shape: tuple[int, ...], dtype: tuple[int, int, int]
) -> tuple[int, bool]:
    """Read the size of the data; return it, and True if it is the tensor's."""
    start = reader.offset
    nbytes = reader.read_i64()
    _code, bits, lanes = dtype
    written = (bits + 7) // 8  # ints of Python: a product cannot wrap
    for extent in shape:
        written *= extent
    text = f"data_byte_size {nbytes}, expected {written * lanes}"
    try:
        own = tensor_nbytes(shape, dtype)
    except ValueError as error:
        raise reader.error(f"{text}, of a {error}", start) from None
    if nbytes not in (written * lanes, written, own):
        raise reader.error(text, start)
    return nbytes, nbytes == own


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
