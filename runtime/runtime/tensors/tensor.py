"""Tensor: a dense array on any device. One file, since methods and constructors need each other."""

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

# DLDataTypeCodes that NumPy supports through ml_dtypes, under the same names.
_ML_DTYPES = (4, *range(7, 18))


class Tensor(TensorBase):
    """A dense array: of bytes on the CPU, or on any device (`empty`, `tensor`).

    Parameters
    ----------
    data : buffer
        The elements' bytes; kept alive, not copied. Read-only data makes a read-only tensor.
    shape : tuple of int
        The extents, in elements.
    dtype : str, tuple of int or data type
        ``"float32"``, DLPack's (code, bits, lanes), or a data type of NumPy or PyTorch.
    incomplete : bool
        True if the size of `data` is not that of the shape: such a tensor can be carried, and
        raises when it is used (old versions of TVM wrote arrays with lanes too short).

    Raises
    ------
    ValueError
        Size and shape disagree, or `dtype` is unknown.

    Notes
    -----
    It supports the buffer protocol and DLPack, so ``numpy.asarray(tensor)`` and
    ``torch.from_dlpack(tensor)`` are views. Data that is not aligned to its element is copied at
    the first use; `raw` is always the given data. Owned memory is aligned to 64 bytes, and freed
    with its last view.

    Elements of less than a byte are packed, as in DLPack: four ``int4`` take two bytes. Only
    ``uint1`` takes a byte, since TVM's bool was a uint1.

    Tensors that functions return or callbacks receive may have strides, or be on a device. A
    tensor that a callback receives is valid until the callback returns.
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
        """Return a NumPy array: a view on the CPU, else a copy.

        Returns
        -------
        numpy.ndarray
            Read-only if the tensor is; keeps its memory alive.

        Raises
        ------
        ValueError
            The tensor is incomplete.
        DeviceError
            Its device cannot be read.
        BufferError
            Neither NumPy nor ml_dtypes (bfloat16, 8-bit floats) has the data type, or ml_dtypes
            is not installed. `raw` has the bytes.
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
        """Copy an array's elements into this tensor; either may be on a device.

        Parameters
        ----------
        source : Tensor, buffer or array with ``__dlpack__``
            Of this tensor's shape and data type. On the CPU both may have strides, and overlap.

        Returns
        -------
        Tensor
            This tensor.

        Raises
        ------
        TypeError
            `source` is not an array, or of another data type.
        ValueError
            Its shape differs, this tensor is read-only, or one of them has strides on a device.
        DeviceError
            The copy on the device failed.
        """
        other = readable(source)
        if other.shape != self.shape:
            raise ValueError(f"copy_from: expected shape {self.shape}, found {other.shape}")
        if other.dtype_code != self.dtype_code:
            raise TypeError(f"copy_from: expected {self.dtype}, found {other.dtype}")
        self._copy_from(other)
        return self

    def copyto(self, target: Tensor | str | int | Device) -> Tensor:
        """Copy this tensor into another one, or to a device.

        Parameters
        ----------
        target : Tensor, Device, or what makes a Device
            A tensor of this tensor's shape and data type, which is overwritten; or the device of a
            new tensor.

        Returns
        -------
        Tensor
            `target`, or the new tensor: a copy even if the device is this tensor's.

        Raises
        ------
        TypeError
            `target` has another data type.
        ValueError
            Its shape differs, it is read-only, or one of the tensors has strides on a device.
        DeviceError
            The device is not available, or out of memory.
        """
        if not isinstance(target, Tensor):
            target = empty(self.shape, self.dtype_code, Device(target))
        return target.copy_from(self)

    def to(self, device: str | int | Device) -> Tensor:
        """Return the tensor on a device: itself if it is there, else a copy.

        Parameters
        ----------
        device : Device, or what makes one
            As ``"opencl:0"``.

        Raises
        ------
        DeviceError
            The device is not available, or out of memory.
        ValueError
            The tensor is incomplete, or has strides on its device.
        """
        device = Device(device)
        if device == self.device:
            return self
        return empty(self.shape, self.dtype_code, device).copy_from(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Called by NumPy for a tensor without a buffer: of its data type, or on a device."""
        import numpy

        if copy is False and not _is_on_cpu(self):
            raise ValueError(f"{self!r}: NumPy needs a copy of it; numpy() makes one")
        return numpy.array(self.numpy(), dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        device = self.device
        place = device.kind if device == Device("cpu") else str(device)
        return f"<Tensor {self.dtype}{list(self.shape)} on {place}>"


def cpu(index: int = 0) -> Device:
    """Return the CPU as a Device, as ``runtime.Device("cpu")`` does.

    Parameters
    ----------
    index : int
        Its number: 0, since there is one.

    Raises
    ------
    DeviceError
        The index is not 0.
    """
    return Device("cpu", index)


def empty(
    shape: int | Iterable[int], dtype: Any = "float32", device: str | int | Device = "cpu"
) -> Tensor:
    """Make a tensor whose elements are not set.

    Parameters
    ----------
    shape : int or iterable of int
        The extents.
    dtype : str, tuple of int or data type
        As for `Tensor`.
    device : Device, or what makes one
        The device of its memory, as ``"opencl:0"``.

    Returns
    -------
    Tensor
        Contiguous and writable; it owns its memory.

    Raises
    ------
    ValueError
        An extent is negative, the size exceeds memory, or `dtype` or `device` is unknown.
    DeviceError
        The device is not available, or out of memory.

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
    """Make a Tensor of an array: a view on its device, or a copy on another one.

    Parameters
    ----------
    array : Tensor, buffer or array with ``__dlpack__``
        A NumPy array, `array.array`, `bytes`, a PyTorch tensor, ...
    device : Device, or what makes one, optional
        The device of the tensor; by default that of `array`.

    Returns
    -------
    Tensor
        Of its shape and data type. A view keeps `array` alive, and is read-only if `array` is.

    Raises
    ------
    TypeError
        It is not an array, or its format is not a data type.
    ValueError
        It is a buffer that is not C-contiguous, and would be viewed.
    BufferError
        Its owner does not share it (PyTorch: one that requires gradients).
    DeviceError
        The device is not available, or out of memory.
    """
    return _view(array) if device is None else readable(array).to(device)


def readable(array: Any) -> Tensor:
    """Make a Tensor of an array to read: a view, or a copy of a buffer with strides."""
    view = None if isinstance(array, Tensor) else _buffer(array)
    if view is None or view.c_contiguous:
        return _view(array)
    return Tensor(view.tobytes(), tuple(view.shape or ()), _format(view))


def from_dlpack(source: Any) -> Tensor:
    """View an array of another library on any device, by DLPack.

    Parameters
    ----------
    source : object with ``__dlpack__``, or capsule
        Its strides, device and read-only flag are kept; versioned or not. Pending work on it must
        be finished, unless it is on the default stream.

    Returns
    -------
    Tensor
        A view; the producer's deleter is called when the last reference to it is freed.

    Raises
    ------
    TypeError
        It has no ``__dlpack__``, or the capsule was consumed before.
    BufferError
        It cannot be shared (PyTorch: one that requires gradients, or is a lazy conjugate or
        negative), or has a later version of DLPack.
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
    """The buffer of an array; None if DLPack (PyTorch) or a data type (ml_dtypes) may serve."""
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
        text = f"{dtype}, whose elements NumPy stores in a byte each; pack them, and pass the bytes"
        raise TypeError(text)
    return Tensor(array.reshape(-1).view("u1"), array.shape, dtype)


def _dtype_code(dtype: Any) -> DTypeCode:
    """The triple of a name, of DLPack's triple, or of a data type of NumPy or PyTorch."""
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
