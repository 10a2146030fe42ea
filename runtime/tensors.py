"""Tensor: a dense array on the CPU, over bytes it borrows or owns."""

from __future__ import annotations

from ._core import TensorBase
from .dtype import dtype_to_string, string_to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """A compact, row-major array on the CPU.

    Parameters
    ----------
    data : buffer
        The elements' bytes; kept alive, not copied. Read-only data makes a read-only tensor.
    shape : tuple of int
        The extents, in elements.
    dtype : str or tuple of int
        ``"float32"``, or (code, bits, lanes) as DLPack has them.
    incomplete : bool
        Whether fewer bytes than the shape needs are accepted: such a tensor can be carried, and
        raises when it is used (TVM cut arrays with lanes short when it wrote them).

    Raises
    ------
    ValueError
        Size and shape disagree, or `dtype` is unknown.

    Notes
    -----
    Takes part in the buffer protocol and in DLPack, so ``numpy.asarray(tensor)`` and
    ``torch.from_dlpack(tensor)`` are views. Data that is not aligned to its element is copied at
    the first use; `raw` shows it as it was given.

    Functions return tensors, too, and callbacks get some: those may have strides, or lie on a
    device. One that a callback was given can be used only until the callback returns.
    """

    def __new__(
        cls,
        data: Any,
        shape: tuple[int, ...],
        dtype: str | DTypeCode,
        *,
        incomplete: bool = False,
    ) -> Tensor:
        code = string_to_dtype(dtype) if isinstance(dtype, str) else dtype
        made = super().__new__(cls, data, shape, code, incomplete=incomplete)
        assert isinstance(made, Tensor)
        return made

    @property
    def dtype(self) -> str:
        """The data type's name, as ``"float32"``."""
        return dtype_to_string(self.dtype_code)

    def numpy(self) -> Any:
        """Return a NumPy array that views the same memory.

        Returns
        -------
        numpy.ndarray
            Read-only where the tensor is; keeps its memory alive.

        Raises
        ------
        ValueError
            The tensor is incomplete.
        BufferError
            NumPy has no such data type, nor has ml_dtypes (bfloat16, 8-bit floats), or that is
            not installed. `raw` has the bytes.
        """
        import numpy

        if self.dtype_code[0] not in _ML_DTYPES:
            return numpy.asarray(memoryview(self))
        dtype = _ml_dtype(self.dtype)
        if self.raw.nbytes < self.nbytes:
            text = (
                f"{self!r} is incomplete: its elements are packed or cut short; raw has the bytes"
            )
            raise ValueError(text)
        return numpy.ndarray(self.shape, dtype, self.raw)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """What NumPy asks where the buffer protocol has no such data type."""
        import numpy

        return numpy.array(self.numpy(), dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        name, index = self.device
        place = name if name == "cpu" else f"{name}:{index}"
        return f"<Tensor {self.dtype}{list(self.shape)} on {place}>"


def tensor(array: Any) -> Tensor:
    """View an array as a Tensor.

    Parameters
    ----------
    array : Tensor or buffer
        Anything with the buffer protocol (a NumPy array, `array.array`, `bytes`), C-contiguous.

    Returns
    -------
    Tensor
        A view that keeps `array` alive, of its shape and data type.

    Raises
    ------
    TypeError
        It has no buffer, or its format is no data type.
    ValueError
        It is not C-contiguous.
    """
    if isinstance(array, Tensor):
        return array
    view = memoryview(array)
    if not view.c_contiguous:
        raise ValueError("an array that is not C-contiguous; copy it first")
    code = _FORMATS.get(view.format.lstrip("@="))
    if code is None:
        raise TypeError(f"a buffer of format {view.format!r}, expected a plain number type")
    return Tensor(view.cast("B") if view.nbytes else b"", tuple(view.shape or ()), code)


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
