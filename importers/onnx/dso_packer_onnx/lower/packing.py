"""Weights in the layouts of their kernels, each packed when it is written, a part at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from packer import operators as fast

from ..dtypes import dtype_name, element_bits
from ..rewrite.bits import signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_FORMS = "packed forms"  # the key in `ir.Value.meta` of a weight: its packed values
_RECORD = "packed"  # that of a packed value: what unpacking needs
_HALVES = {ir.DataType.BFLOAT16: "DSO_OP_BFLOAT16", ir.DataType.FLOAT16: "DSO_OP_FLOAT16"}
_PART_NBYTES = 16 << 20  # of a matrix that are packed at once


class PackedTensor(ir.LazyTensor):  # type: ignore[misc]
    """A packed weight, which takes no memory: each read packs it again.

    Parameters
    ----------
    parts : callable
        Returns an iterator of arrays, whose bytes make up the tensor, in order.
    """

    def __init__(
        self, parts: Callable[[], Iterator[Any]], dtype: ir.DataType, shape: Sequence[int]
    ) -> None:
        super().__init__(self._whole, dtype, ir.Shape(shape))
        self.parts = parts

    def _whole(self) -> ir.Tensor:
        array = np.concatenate([part.ravel() for part in self.parts()])
        return ir.Tensor(array.reshape(self.shape.numpy()))


def packed_conv2d(weight: ir.Value, *, groups: int, block: int) -> ir.Value:
    """Return a convolution's weight as `pack_conv2d` stores it."""
    return _packed(
        weight,
        {"kernel": "conv2d", "groups": groups, "block": block},
        _stored_type(weight),
        [fast.conv2d_count(_extents(weight), groups, block)],
        lambda array: fast.conv2d_parts(array, groups, block),
    )


def packed_matmul(b: ir.Value, *, is_transposed: bool) -> ir.Value:
    """Return the right factor of a product, (..., inner, columns), as `pack_matmul` stores it."""
    return _packed(
        b,
        {"kernel": "matmul", "transposed": is_transposed},
        _stored_type(b),
        fast.matmul_shape(_extents(b, is_transposed)),
        lambda array: _matrix_parts(array, is_transposed, fast.pack_matmul),
    )


def packed_matmul_bits(b: ir.Value, *, is_transposed: bool, bits: int, block: int) -> ir.Value:
    """Return the right factor of a product, rounded, as `pack_matmul_bits` stores it."""
    return _packed(
        b,
        {"kernel": "matmul_bits", "transposed": is_transposed, "bits": bits, "block": block},
        ir.DataType.INT32,
        fast.matmul_bits_shape(_extents(b, is_transposed), bits, block),
        lambda array: _matrix_parts(
            array,
            is_transposed,
            lambda part: fast.pack_matmul_bits(
                *fast.quantize_matmul(part, bits, block), bits, block
            ),
        ),
    )


def packed_integers(
    b: ir.Value,
    scales: ir.Value,
    zeros: Any = None,
    *,
    is_transposed: bool = False,
    bits: int,
    block: int,
) -> ir.Value:
    """Return a matrix of integers with its scales as `pack_matmul_bits` stores them."""
    factors = scales.const_value
    assert factors is not None
    has_zeros = zeros is not None
    form = {"kernel": "matmul_bits", "transposed": is_transposed, "bits": bits, "block": block}

    def packed() -> Any:
        parts = [signed(b), factors.numpy(), zeros]
        if is_transposed:
            parts = [None if one is None else one.T for one in parts]
        integers, steps, offsets = parts
        return fast.pack_matmul_bits(integers, steps, bits, block, offsets)

    return _packed(
        b,
        {**form, "zeros": True} if has_zeros else form,
        ir.DataType.INT32,
        fast.matmul_bits_shape(_extents(b, is_transposed), bits, block, has_zeros=has_zeros),
        lambda _: iter([packed()]),
    )


def packed_lowp_matmul(b: ir.Value, *, is_transposed: bool) -> ir.Value:
    """Return the right factor of a low-precision product as `pack_lowp_matmul` stores it."""
    return _packed(
        b,
        {"kernel": "lowp_matmul", "transposed": is_transposed, "dtype": dtype_name(b)},
        ir.DataType.INT8,
        fast.lowp_matmul_shape(_extents(b, is_transposed), element_bits(b) // 8),
        lambda array: _matrix_parts(array, is_transposed, fast.pack_lowp_matmul),
    )


def packed_lowp_conv2d(weight: ir.Value, *, groups: int) -> ir.Value:
    """Return a convolution's weight of 8 bits as `pack_lowp_conv2d` stores it."""
    return _packed(
        weight,
        {"kernel": "lowp_conv2d", "groups": groups, "dtype": dtype_name(weight)},
        ir.DataType.INT8,
        [fast.lowp_conv2d_count(_extents(weight), groups)],
        lambda array: iter([fast.pack_lowp_conv2d(array, groups=groups)]),
    )


def _stored_type(weight: ir.Value) -> ir.DataType:
    return weight.dtype if weight.dtype in _HALVES else ir.DataType.FLOAT


def half_in_c(field: str, weight: ir.Value) -> str:
    """Return an initialiser of the type of packed weights; "" for float32."""
    return f" .{field} = {_HALVES[weight.dtype]}," if weight.dtype in _HALVES else ""


def packing_of(value: ir.Value) -> dict[str, Any] | None:
    """Return the entry of a packed weight in the record of the graph, or None."""
    found: dict[str, Any] | None = value.meta.get(_RECORD)
    return found


def _extents(weight: ir.Value, is_transposed: bool = False) -> tuple[int, ...]:
    """Return the shape of a weight as the packing function gets it."""
    assert weight.const_value is not None
    *batch, rows, columns = weight.const_value.shape.numpy()
    return (*batch, columns, rows) if is_transposed else (*batch, rows, columns)


def _matrix_parts(array: Any, is_transposed: bool, pack: Callable[[Any], Any]) -> Iterator[Any]:
    """Pack matrices: panels of columns are independent, and follow each other."""
    array = array.swapaxes(-1, -2) if is_transposed else array
    *batch, inner, columns = array.shape
    panels = _PART_NBYTES // (max(inner, 1) * array.itemsize * fast.PANEL)
    width = max(panels, 1) * fast.PANEL
    for index in np.ndindex(*batch):
        for start in range(0, columns, width):
            yield pack(array[index][:, start : start + width])


def _packed(
    weight: ir.Value,
    how: dict[str, Any],
    dtype: ir.DataType,
    shape: Sequence[int],
    parts: Callable[[Any], Iterator[Any]],
) -> ir.Value:
    forms: dict[str, ir.Value] = weight.meta.setdefault(_FORMS, {})
    key = repr(how)
    if key not in forms:
        tensor = weight.const_value
        assert tensor is not None
        made = ir.Value(
            name=weight.name,
            shape=ir.Shape(shape),
            type=ir.TensorType(dtype),
            const_value=PackedTensor(lambda: parts(tensor.numpy()), dtype, shape),
        )
        made.meta[_RECORD] = {"form": "packed", **how, "shape": list(tensor.shape.numpy())}
        if dtype in _HALVES:
            made.meta[_RECORD]["dtype"] = dtype_name(weight)
        forms[key] = made
    return forms[key]
