"""The fused operators of the domain ``dso``, each with its lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .elementwise import elementwise
from .narrow import narrow_conv2d, narrow_matmul
from .pictures import concat, conv2d, interleave, pool, reorder
from .quantize import dequantize, dynamic_quantize, quantize
from .rows import attention, matmul, normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ..operator import Operator

_LOWERINGS: dict[str, Callable[[ir.Node], Operator]] = {
    "Attention": attention,
    "Concat": concat,
    "Conv": conv2d,
    "Dequantize": dequantize,
    "DynamicQuantize": dynamic_quantize,
    "Elementwise": elementwise,
    "Enlarge": reorder,
    "Interleave": interleave,
    "MatMul": matmul,
    "NarrowConv": narrow_conv2d,
    "NarrowMatMul": narrow_matmul,
    "Normalize": normalize,
    "Pool": pool,
    "Quantize": quantize,
    "Reorder": reorder,
}


def lower_fast(node: ir.Node) -> Operator:
    """Return the C function of a node of the domain ``dso``."""
    return _LOWERINGS[node.op_type](node)
