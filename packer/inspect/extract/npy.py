r"""The .npy file of a tensor, written without NumPy.

    "\x93NUMPY", u8 1, u8 0, u16 header bytes, header: a Python dict, spaces, "\n", the elements

Everything before the elements takes a multiple of 64 bytes. (NumPy, NEP 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.tensors.tensor import Tensor

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNMENT = 64
_LETTERS = {0: "i", 1: "u", 2: "f", 5: "c"}  # DLDataTypeCode
_BITS = {0: (8, 16, 32, 64), 1: (8, 16, 32, 64), 2: (16, 32, 64), 5: (64, 128)}
_BOOL = (6, 8, 1)


def dump_npy(array: Tensor) -> Sequence[bytes | memoryview] | None:
    """Write a tensor without copying its elements.

    None if NumPy has no such data type, or elements are missing.
    """
    descr = _descr(array.dtype_code)
    if descr is None or array.raw.nbytes != array.nbytes:
        return None
    fields = {"descr": descr, "fortran_order": False, "shape": tuple(array.shape)}
    header = repr(fields).encode()
    nbytes = len(_MAGIC) + 2 + len(header) + 1
    header += b" " * (-nbytes % _ALIGNMENT) + b"\n"
    return [_MAGIC, len(header).to_bytes(2, "little"), header, array.raw]


def _descr(dtype: tuple[int, int, int]) -> str | None:
    code, bits, lanes = dtype
    if dtype == _BOOL:
        return "|b1"
    if lanes != 1 or bits not in _BITS.get(code, ()):
        return None
    return f"{'|' if bits == 8 else '<'}{_LETTERS[code]}{bits // 8}"
