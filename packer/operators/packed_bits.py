"""Weights of 4 and 8 bits, rounded and packed with NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .packed import PANEL

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCKS = (16, 32, 64, 128, 256)
_WORD = 32  # bits


def quantize_matmul(b: Any, bits: int, block: int = 32) -> tuple[Any, Any]:
    """Round the right factor of a matrix product to integers.

    Parameters
    ----------
    b : ndarray
        float32 of shape (inner, columns); a transposed view of a weight is fine.
    bits : int
        4 or 8.
    block : int
        The inputs that share a scale: 16, 32, 64, 128 or 256.

    Returns
    -------
    tuple of ndarray
        Integers, int8 of shape (inner, columns), and scales, float32 of shape (inner / block
        rounded up, columns): the nearest to ``b / scale``, with the greatest of a block at 7 or
        127. The caller owns both.

    Raises
    ------
    ValueError
        The number of bits or the block is another one, or an element is not finite.
    """
    import numpy as np

    _check(bits, block)
    inner, columns = b.shape
    blocks = -(-inner // block)
    whole = np.zeros((blocks * block, columns), np.float32)
    whole[:inner] = b
    if not np.isfinite(whole).all():
        raise ValueError("b, expected finite numbers, found NaN or infinity")
    split = whole.reshape(blocks, block, columns)
    most = (1 << (bits - 1)) - 1
    scales = (np.abs(split).max(1) / most).astype(np.float32)
    divisors = np.where(scales == 0, np.float32(1), scales)
    integers = np.rint(split / divisors[:, None]).clip(-most, most).astype(np.int8)
    return integers.reshape(-1, columns)[:inner], scales


def pack_matmul_bits(
    integers: Any, scales: Any, bits: int, block: int = 32, zeros: Any = None
) -> Any:
    """Pack integers and scales, as `quantize_matmul` makes them, in the order of the kernel.

    Parameters
    ----------
    integers : ndarray
        int8 of shape (inner, columns): -8 ... 7 for 4 bits.
    scales : ndarray
        float32 of shape (inner / block rounded up, columns).
    bits, block : int
        As for `quantize_matmul`.
    zeros : ndarray, optional
        The number that counts as 0, for each scale: an array of the same shape.

    Returns
    -------
    ndarray
        int32, C-contiguous: (columns / 32 rounded up, blocks, 1 + block * bits / 32, 32). The first
        row of a block has the scales as float32, the second one the zeros if there are any. Each
        other row has the adjacent inputs of a column in a word: bytes, of which the first is the
        lowest; or for 4 bits the first four inputs in the low halves of bytes, then four in the
        high halves. The caller owns it.

    Raises
    ------
    ValueError
        The number of bits or the block is another one; or the scales or zeros have another shape,
        or are not finite.
    """
    import numpy as np

    _check(bits, block)
    inner, columns = integers.shape
    blocks, panels, in_word = -(-inner // block), -(-columns // PANEL), _WORD // bits
    rows = [scales] if zeros is None else [scales, zeros]
    for name, row in zip(("scales", "zeros"), rows, strict=False):
        if row.shape != (blocks, columns) or not np.isfinite(row).all():
            text = f"finite numbers of shape {(blocks, columns)}"
            raise ValueError(f"{name}, expected {text}, found shape {row.shape} or NaN, infinity")
    whole = np.zeros((blocks * block, panels * PANEL), np.uint32)
    whole[:inner, :columns] = integers.astype(np.uint32) & np.uint32((1 << bits) - 1)
    parts = whole.reshape(blocks, block // in_word, in_word, panels, PANEL)
    words = np.zeros((blocks, block // in_word, panels, PANEL), np.uint32)
    for index in range(in_word):
        words |= parts[:, :, index] << np.uint32(8 * (index % 4) + 4 * (index // 4))
    factors = np.zeros((blocks, len(rows), panels, PANEL), np.float32)
    for index, row in enumerate(rows):
        factors[:, index].reshape(blocks, -1)[:, :columns] = row
    packed = np.concatenate([factors.view(np.uint32), words], 1).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(packed).view(np.int32)


def matmul_bits_shape(
    shape: Sequence[int], bits: int, block: int, *, has_zeros: bool = False
) -> tuple[int, ...]:
    """Return the shape of what `pack_matmul_bits` makes of a factor of this shape."""
    inner, columns = shape
    rows = 1 + has_zeros + block * bits // _WORD
    return (-(-columns // PANEL), -(-inner // block), rows, PANEL)


def _check(bits: int, block: int) -> None:
    if bits not in (4, 8):
        raise ValueError(f"bits, expected 4 or 8, found {bits!r}")
    if block not in BLOCKS:
        raise ValueError(f"block, expected one of {BLOCKS}, found {block!r}")
