"""Tensor: a dense array on any device, over memory that it borrows or owns."""

from __future__ import annotations

from .._core import Device, TensorBase
from .._core import empty as _empty
from .._core import from_dlpack as _from_dlpack
from .dtype import dtype_to_string, string_to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .dtype import DTypeCode

# Buffer protocol format characters (struct), native sizes, to DLDataType.
_FORMATS = {
    **{char: (0, bits, 1) for char, bits in zip("bhilq", (8, 16, 32, 64, 64), strict=True)},
    **{char: (1, bits, 1) for char, bits in zip("BHILQ", (8, 16, 32, 64, 64), strict=True)},
    **{char: (2, bits, 1) for char, bits in zip("efd", (16, 32, 64), strict=True)},
    "?": (6, 8, 1),
    "Zf": (5, 64, 1),
    "Zd": (5, 128, 1),
}

# DLDataTypeCodes whose arrays NumPy has through ml_dtypes, under the same names.
_ML_DTYPES = (4, *range(7, 18))


class Tensor(TensorBase):
    """A dense array: over bytes on the CPU, as made here, or on any device (`empty`, `tensor`).

    Parameters
    ----------
    data : buffer
        The elements' bytes; kept alive, not copied. Read-only data makes a read-only tensor.
    shape : tuple of int
        The extents, in elements.
    dtype : str, tuple of int or data type
        ``"float32"``, (code, bits, lanes) as DLPack has them, or NumPy's or PyTorch's own.
    incomplete : bool
        Whether `data` is of another size than the shape asks for: such a tensor can be carried, and
        raises when it is used (TVM cut arrays with lanes short when it wrote them).

    Raises
    ------
    ValueError
        Size and shape disagree, or `dtype` is unknown.

    Notes
    -----
    Takes part in the buffer protocol and in DLPack, so ``numpy.asarray(tensor)`` and
    ``torch.from_dlpack(tensor)`` are views. Data that is not aligned to its element is copied at
    the first use; `raw` shows it as it was given. Memory of its own is freed when the last view
    of it is gone, and aligned to 64 bytes.

    Elements of less than a byte are packed, as DLPack stores them, so four ``int4`` have two bytes;
    only a ``uint1`` has a byte, since TVM's bool once was one.

    Functions return tensors, too, and callbacks get some: those may have strides, or lie on a
    device. One that a callback was given can be used only until the callback returns.
    """

    def __new__(
        cls,
        data: Any,
        shape: tuple[int, ...],
        dtype: Any,
        *,
        incomplete: bool = False,
    ) -> Tensor:
        made = super().__new__(cls, data, shape, _dtype_code(dtype), incomplete=incomplete)
        assert isinstance(made, Tensor)
        return made

    @property
    def dtype(self) -> str:
        """The data type's name, as ``"float32"``."""
        return dtype_to_string(self.dtype_code)

    def numpy(self) -> Any:
        """Return a NumPy array: of the same memory on the CPU, else a copy.

        Returns
        -------
        numpy.ndarray
            Read-only where the tensor is; keeps its memory alive.

        Raises
        ------
        ValueError
            The tensor is incomplete.
        DeviceError
            It lies on a device that cannot be read.
        BufferError
            NumPy has no such data type, nor has ml_dtypes (bfloat16, 8-bit floats), or that is
            not installed. `raw` has the bytes.
        """
        if not _is_on_cpu(self):
            return self.to("cpu").numpy()
        import numpy

        if self.dtype_code[0] not in _ML_DTYPES:
            return numpy.asarray(memoryview(self))
        dtype = _ml_dtype(self.dtype)
        if self.raw.nbytes != self.nbytes:
            raise ValueError(f"{self!r} is incomplete; raw has the bytes")
        if self.dtype_code[1] % 8:
            raise BufferError(f"{self!r}: its elements share bytes; raw has the bytes")
        return numpy.ndarray(self.shape, dtype, self.raw)

    def copy_from(self, source: Any) -> Tensor:
        """Copy an array's elements into this tensor; either may lie on a device.

        Parameters
        ----------
        source : Tensor, buffer or array with ``__dlpack__``
            Of this tensor's shape and data type. On the CPU both may have strides, and overlap.

        Returns
        -------
        Tensor
            This one.

        Raises
        ------
        TypeError
            `source` is no array, or of another data type.
        ValueError
            Its shape is another, this tensor is read-only, or one has strides on a device.
        DeviceError
            The device cannot do it.
        """
        other = readable(source)
        if other.shape != self.shape:
            raise ValueError(f"copy_from: expected shape {self.shape}, found {other.shape}")
        if other.dtype_code != self.dtype_code:
            raise TypeError(f"copy_from: expected {self.dtype}, found {other.dtype}")
        self._copy_from(other)
        return self

    def to(self, device: str | int | Device) -> Tensor:
        """Return the tensor on a device: itself if it lies there, else a copy.

        Parameters
        ----------
        device : Device, or what makes one
            As ``"opencl:0"``.

        Raises
        ------
        DeviceError
            There is no such device, or no room on it.
        ValueError
            The tensor is incomplete, or has strides on its device.
        """
        device = Device(device)
        if device == self.device:
            return self
        return empty(self.shape, self.dtype_code, device).copy_from(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """What NumPy asks where there is no buffer: the data type has no format, or a device."""
        import numpy

        if copy is False and not _is_on_cpu(self):
            raise ValueError(f"{self!r}: NumPy needs a copy of it; numpy() makes one")
        return numpy.array(self.numpy(), dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        device = self.device
        place = device.kind if device == Device("cpu") else str(device)
        return f"<Tensor {self.dtype}{list(self.shape)} on {place}>"


def empty(
    shape: int | Iterable[int], dtype: Any = "float32", device: str | int | Device = "cpu"
) -> Tensor:
    """Make a tensor whose elements are not set.

    Parameters
    ----------
    shape : int or iterable of int
        The extents.
    dtype : str, tuple of int or data type
        As `Tensor` takes it.
    device : Device, or what makes one
        Where its memory is, as ``"opencl:0"``.

    Returns
    -------
    Tensor
        Compact and writable, in memory of its own.

    Raises
    ------
    ValueError
        An extent is negative, the size is beyond memory, or `dtype` or `device` is unknown.
    DeviceError
        The device is not there, or has no room.

    Examples
    --------
    >>> import runtime
    >>> runtime.empty(2).copy_from(runtime.Tensor(bytes(8), (2,), "float32"))
    <Tensor float32[2] on cpu>
    """
    extents = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    made = _empty(extents, _dtype_code(dtype), device)
    assert isinstance(made, Tensor)
    return made


def tensor(array: Any, device: str | int | Device | None = None) -> Tensor:
    """Make a Tensor of an array: a view where it lies, or a copy on another device.

    Parameters
    ----------
    array : Tensor, buffer or array with ``__dlpack__``
        A NumPy array, `array.array`, `bytes`, a PyTorch tensor, ...
    device : Device, or what makes one, optional
        Where the tensor is to be; by default where `array` is.

    Returns
    -------
    Tensor
        Of its shape and data type. A view keeps `array` alive, and is read-only where that is.

    Raises
    ------
    TypeError
        It is no array, or its format is no data type.
    ValueError
        It is a buffer that is not C-contiguous, and would be viewed.
    BufferError
        Its owner does not share it (PyTorch: one that requires gradients).
    DeviceError
        The device is not there, or has no room.
    """
    return _view(array) if device is None else readable(array).to(device)


def readable(array: Any) -> Tensor:
    """Make a Tensor of an array that is read at once: a view, or a copy of a buffer with strides.

    Raises
    ------
    TypeError, BufferError
        As `tensor` does.
    """
    view = None if isinstance(array, Tensor) else _buffer(array)
    if view is None or view.c_contiguous:
        return _view(array)
    return Tensor(view.tobytes(), tuple(view.shape or ()), _format(view))


def from_dlpack(source: Any) -> Tensor:
    """View an array of another library, wherever it lies, by DLPack.

    Parameters
    ----------
    source : object with ``__dlpack__``, or capsule
        Its strides, device and read-only flag are kept; versioned or not. Work on it that is
        pending on a stream other than the default one has to be over.

    Returns
    -------
    Tensor
        A view; the producer is told when the last reference to it goes.

    Raises
    ------
    TypeError
        It has no ``__dlpack__``, or the capsule was taken before.
    BufferError
        It cannot be shared (PyTorch: one that requires gradients, or is a lazy conjugate or
        negative), or speaks a later DLPack.
    ValueError
        Its layout contradicts itself.
    """
    if not hasattr(source, "__dlpack__") and type(source).__name__ != "PyCapsule":
        raise TypeError(f"expected an array with __dlpack__, found {type(source).__name__}")
    if hasattr(source, "is_neg") and source.is_neg():  # __dlpack__ would lose the signs
        raise BufferError("a PyTorch tensor with the negative bit set; pass its resolve_neg()")
    made = _from_dlpack(source)
    assert isinstance(made, Tensor)
    return made


def _view(array: Any) -> Tensor:
    if isinstance(array, Tensor):
        return array
    view = _buffer(array)
    if view is None:
        return _of_ml_dtype(array) or from_dlpack(array)
    if not view.c_contiguous:
        raise ValueError("an array that is not C-contiguous; copy it first")
    empty_bytes = b"" if view.readonly else bytearray()  # a view of nothing has no cast
    data = view.cast("B") if view.nbytes else empty_bytes
    return Tensor(data, tuple(view.shape or ()), _format(view))


def _buffer(array: Any) -> memoryview | None:
    """The buffer of an array; None where DLPack may serve (PyTorch), or a name (ml_dtypes)."""
    try:
        return memoryview(array)
    except (TypeError, ValueError, BufferError) as error:
        if hasattr(array, "__dlpack__"):
            return None
        if isinstance(error, TypeError):
            text = (
                f"expected an array, of a buffer or with __dlpack__, found {type(array).__name__}"
            )
            raise TypeError(text) from None
        raise


def _format(view: memoryview) -> DTypeCode:
    code = _FORMATS.get(view.format.lstrip("@="))
    if code is None:
        raise TypeError(f"a buffer of format {view.format!r}, expected a plain number type")
    return code


def _of_ml_dtype(array: Any) -> Tensor | None:
    """A view of a NumPy array of bfloat16 or 8-bit floats, which have no buffer and no DLPack."""
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "kind", None) != "V" or not array.flags.c_contiguous:
        return None
    if _dtype_code(dtype)[1] % 8:
        text = f"{dtype}, whose elements NumPy has in a byte each; pack them, and pass the bytes"
        raise TypeError(text)
    return Tensor(array.reshape(-1).view("u1"), array.shape, dtype)


def _dtype_code(dtype: Any) -> DTypeCode:
    """Of a name, of DLPack's triple, of a dtype or scalar type of NumPy, or a dtype of PyTorch."""
    if isinstance(dtype, tuple):
        return dtype
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    name = name or getattr(dtype, "__name__", None) or str(dtype).removeprefix("torch.")
    return string_to_dtype(name)


def _is_on_cpu(tensor: Tensor) -> bool:
    return tensor.device.kind in ("cpu", "cuda_host")


def _ml_dtype(name: str) -> Any:
    try:
        import ml_dtypes
    except ImportError as error:
        text = f"{name} in NumPy needs ml_dtypes: pip install ml_dtypes; raw has the bytes"
        raise BufferError(text) from error
    dtype = getattr(ml_dtypes, name, None)
    if dtype is None:
        raise BufferError(f"{name}: neither NumPy nor ml_dtypes has it; raw has the bytes")
    return dtype
