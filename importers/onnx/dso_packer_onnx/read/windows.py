"""Rules of windows and scales that ONNX's inference does not check, where ONNX Runtime refuses.

Each rule gets a node with the types of its values, and returns what is wrong, or None.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from .words import shape_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx_ir as ir

    from .types import Type

_POOLS = {"MaxPool", "AveragePool", "LpPool"}
_CONVOLUTIONS = {"Conv", "ConvInteger", "QLinearConv"}
_AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
# Operators with scales, by the numbers of inputs: divisors first, then factors.
_SCALES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "QuantizeLinear": ((1,), ()),
    "DequantizeLinear": ((), (1,)),
    "QLinearConv": ((6,), (1, 4)),
    "QLinearMatMul": ((6,), (1, 4)),
}


def wrong_window(node: ir.Node, types: Mapping[ir.Value, Type]) -> str | None:
    """Check the attributes of a convolution or pool, and that its window fits into the image."""
    if node.op_type not in _POOLS | _CONVOLUTIONS | {"ConvTranspose"}:
        return None
    attributes = node.attributes
    if (auto_pad := attributes.get_string("auto_pad", "NOTSET")) not in _AUTO_PADS:
        return f"auto_pad, expected one of {', '.join(_AUTO_PADS)}, found {auto_pad!r}"
    kernel = attributes.get_ints("kernel_shape", [])
    dilations = attributes.get_ints("dilations", [1] * len(kernel))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=False)]
    pads = attributes.get_ints("pads", [])
    if node.op_type in _POOLS and any(p >= e for p, e in zip(pads, extents * 2, strict=False)):
        return f"pads, expected less than the window's {extents}, found {list(pads)}"
    if node.op_type == "ConvTranspose":
        return _output_padding(node)
    image, made = (types[v].shape or () for v in (node.inputs[0], node.outputs[0]) if v)
    if 0 in made[2:] and 0 not in image[2:] and node.op_type in _CONVOLUTIONS:
        return f"W is larger than the image {shape_text(image)} with its pads"
    return None


def _output_padding(node: ir.Node) -> str | None:
    added = node.attributes.get_ints("output_padding", [])
    steps = [node.attributes.get_ints(n, [1] * len(added)) for n in ("strides", "dilations")]
    if all(a < max(pair) for a, *pair in zip(added, *steps, strict=False)):
        return None
    return f"output_padding, expected less than the stride or dilation, found {list(added)}"


def wrong_scale(node: ir.Node, constants: Mapping[ir.Value, Any]) -> str | None:
    """Check the scales that are known: finite, and not 0 for a division."""
    divisors, factors = _SCALES.get(node.op_type, ((), ()))
    for index in (*divisors, *factors):
        value = node.inputs[index]
        for scale in map(float, constants[value].flat if value in constants else ()):
            if not isfinite(scale) or (scale == 0 and index in divisors):
                return f"scale of input {index}, expected a finite number but 0, found {scale}"
    return None
