"""The fused operators of the domain ``dso``, each with its lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sequence_code import CALLS
from .append import append
from .bits import matmul_bits, rows_bits
from .elementwise import elementwise
from .extents import extents, prefix
from .flow import flow, raising
from .images import concat, conv2d, interleave, pooling, reorder
from .lowp import lowp_conv2d, lowp_matmul
from .open.windows import computed_pad
from .quantize import dequantize, dynamic_quantize, quantize, unpack
from .recurrent_layer import recurrent
from .resample import resample, resize
from .rows import attention, double_matmul, matmul, normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ..operator import Operator

_LOWERINGS: dict[str, Callable[[ir.Node], Operator]] = {
    "Append": append,
    "Attention": attention,
    "Concat": concat,
    "Conv": conv2d,
    "Dequantize": dequantize,
    "DoubleMatMul": double_matmul,
    "DynamicQuantize": dynamic_quantize,
    "Elementwise": elementwise,
    "Extents": extents,
    "If": flow,
    "Interleave": interleave,
    "MatMul": matmul,
    "Loop": flow,
    "MatMulBits": matmul_bits,
    "LowpConv": lowp_conv2d,
    "LowpMatMul": lowp_matmul,
    "Normalize": normalize,
    "Pad": computed_pad,
    "Pooling": pooling,
    "Prefix": prefix,
    "Quantize": quantize,
    "Raise": raising,
    "Recurrent": recurrent,
    "Reorder": reorder,
    "RowsBits": rows_bits,
    "Resample": resample,
    "Resize": resize,
    "Unpack": unpack,
    **dict.fromkeys((f"Sequence{call}" for call in CALLS), flow),
}


def lower_fast(node: ir.Node) -> Operator:
    """Return the C function of a node of the domain ``dso``."""
    return _LOWERINGS[node.op_type](node)
