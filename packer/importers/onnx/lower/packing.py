"""Weights in the layouts of their kernels: each is packed once for a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from ....operators.packed import pack_conv2d, pack_matmul
from ....operators.packed_narrow import pack_narrow_conv2d, pack_narrow_matmul
from ..dtypes import dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMS = "packed forms"  # the key in `ir.Value.meta` of a weight: its packed values
_RECORD = "packed"  # that of a packed value: what unpacking needs


def packed_conv2d(weight: ir.Value, *, groups: int, block: int) -> ir.Value:
    """Return a convolution's weight as `pack_conv2d` stores it."""
    return _packed(
        weight,
        {"kernel": "conv2d", "groups": groups, "block": block},
        lambda array: pack_conv2d(array, groups=groups, block=block),
    )


def packed_matmul(b: ir.Value, *, is_transposed: bool) -> ir.Value:
    """Return the right factor of a product, (..., inner, columns), as `pack_matmul` stores it."""
    return _packed(
        b,
        {"kernel": "matmul", "transposed": is_transposed},
        lambda array: pack_matmul(array.swapaxes(-1, -2) if is_transposed else array),
    )


def packed_narrow_matmul(b: ir.Value, *, is_transposed: bool) -> ir.Value:
    """Return the right factor of a product of narrow elements as `pack_narrow_matmul` stores it."""
    return _packed(
        b,
        {"kernel": "narrow_matmul", "transposed": is_transposed, "dtype": dtype_name(b)},
        lambda array: pack_narrow_matmul(array.swapaxes(-1, -2) if is_transposed else array),
    )


def packed_narrow_conv2d(weight: ir.Value, *, groups: int) -> ir.Value:
    """Return a convolution's weight of 8 bits as `pack_narrow_conv2d` stores it."""
    return _packed(
        weight,
        {"kernel": "narrow_conv2d", "groups": groups, "dtype": dtype_name(weight)},
        lambda array: pack_narrow_conv2d(array, groups=groups),
    )


def packing_of(value: ir.Value) -> dict[str, Any] | None:
    """Return the entry of a packed weight in the record of the graph, or None."""
    found: dict[str, Any] | None = value.meta.get(_RECORD)
    return found


def _packed(weight: ir.Value, how: dict[str, Any], pack: Callable[[Any], Any]) -> ir.Value:
    forms: dict[str, ir.Value] = weight.meta.setdefault(_FORMS, {})
    key = repr(how)
    if key not in forms:
        assert weight.const_value is not None
        array = weight.const_value.numpy()
        tensor = ir.tensor(pack(array), name=weight.name)
        made = ir.Value(
            name=weight.name,
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        made.meta[_RECORD] = {"form": "packed", **how, "shape": list(array.shape)}
        forms[key] = made
    return forms[key]
