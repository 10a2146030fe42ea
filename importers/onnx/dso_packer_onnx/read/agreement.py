"""Rules of operators that ONNX's inference does not check: extents that must be equal.

Without them a kernel reads past the end of a weight. Each rule gets the node and the shapes of its
inputs, and returns what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from .tensors import MOST_AXES
from .types import Type
from .windows import wrong_scale, wrong_window
from .words import shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

Shape = tuple[int, ...]
# Attributes that count or divide, which must be at least 1; ONNX's inference may divide by 0.
POSITIVE = {
    *("strides", "dilations", "kernel_shape", "group", "num_groups", "blocksize", "num_outputs"),
    *("num_heads", "kv_num_heads", "q_num_heads", "hidden_size", "size"),
}
MOST_ATTRIBUTE = (1 << 31) - 1
# The input whose length is the number of axes of the output.
_SHAPE_INPUTS = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Unsqueeze": 1, "Squeeze": 1}
# Operators without inference whose first output is like the first input.
LIKE_INPUT = {"GroupNormalization", "MeanVarianceNormalization"}


def axis_out_of_range(node: ir.Node, types: Mapping[ir.Value, Type]) -> str | None:
    """Return why an axis does not fit the first input, or None; inference may crash on it.

    A shape of many extents is refused too: inference would make as many.
    """
    place = _SHAPE_INPUTS.get(node.op_type)
    if place is not None and len(node.inputs) > place and node.inputs[place] in types:
        shape = types[node.inputs[place]].shape or ()
        if prod(extent or 0 for extent in shape) > MOST_AXES:
            return f"input {place}, expected at most {MOST_AXES} extents, found {shape_text(shape)}"
    first = types[node.inputs[0]].shape if node.inputs and node.inputs[0] in types else None
    attribute = node.attributes.get("axis")
    if first is None or attribute is None or not isinstance(attribute.value, int):
        return None
    least, most = -len(first) - 1, len(first)  # OneHot and Flatten have one more than others
    if least <= attribute.value <= most:
        return None
    return f"axis, expected one of {len(first)} axes of the first input, found {attribute.value}"


def disagreement(
    node: ir.Node, types: Mapping[ir.Value, Type], constants: Mapping[ir.Value, Any]
) -> str | None:
    """Return why the inputs of a node do not fit each other, or None.

    All inputs and outputs have types; `constants` has the values of small inputs.
    """
    if node.domain:
        return None
    shapes = [None if value is None else types[value].shape for value in node.inputs]
    known = [None if s is None else tuple(e or 0 for e in s) for s in shapes]
    if node.op_type in ("Reshape", "Flatten", "DepthToSpace", "SpaceToDepth"):
        made = types[node.outputs[0]].shape or ()
        if prod(e or 0 for e in made) != prod(known[0] or ()):
            text = f"the elements of {shape_text(known[0])}, expected as many in the output, found"
            return f"{text} {shape_text(made)}"
    if node.op_type == "Gather" and node.inputs[1] in constants:
        return _gather(node, known, constants[node.inputs[1]])
    rule = _RULES.get(node.op_type)
    found = rule(node, known) if rule is not None else None
    return found or wrong_window(node, types) or wrong_scale(node, constants)


def _equal(name: str, found: Shape | None, expected: Sequence[int]) -> str | None:
    if found is None or found == tuple(expected):
        return None
    return f"{name}: shape, expected {shape_text(expected)}, found {shape_text(found)}"


def _fits(name: str, found: Shape | None, into: Shape) -> str | None:
    """Check that a shape broadcasts into another one."""
    if found is None:
        return None
    pairs = zip(reversed(found), reversed(into), strict=False)
    if len(found) <= len(into) and all(a in (1, b) for a, b in pairs):
        return None
    text = f"{name}: shape, expected one that broadcasts to {shape_text(into)}, found"
    return f"{text} {shape_text(found)}"


def _input(shapes: list[Shape | None], index: int) -> Shape | None:
    return shapes[index] if index < len(shapes) else None


def _convolution(node: ir.Node, shapes: list[Shape | None], weight: int, bias: int) -> str | None:
    image, kernel = shapes[0] or (), shapes[weight] or ()
    if len(image) != len(kernel) or len(image) < 3:
        return f"W: shape, expected {len(image)} axes, found {shape_text(kernel)}"
    group = node.attributes.get_int("group", 1)
    extents = node.attributes.get_ints("kernel_shape", kernel[2:])
    if tuple(extents) != kernel[2:]:
        return f"kernel_shape, expected {shape_text(kernel[2:])} as W has, found {list(extents)}"
    inputs, outputs = kernel[1] * group, kernel[0]
    if node.op_type == "ConvTranspose":
        inputs, outputs = kernel[0], kernel[1] * group
    if image[1] != inputs:
        text = f"X has {image[1]} channels, expected {inputs} for W {shape_text(kernel)}"
        return f"{text} and group {group}"
    if kernel[0] % group:
        return f"W: shape {shape_text(kernel)}, expected a multiple of group {group} first"
    return _equal("B", _input(shapes, bias), (outputs,))


def _gemm(node: ir.Node, shapes: list[Shape | None]) -> str | None:
    one, other = shapes[0] or (), shapes[1] or ()
    one = one[::-1] if node.attributes.get_int("transA", 0) else one
    other = other[::-1] if node.attributes.get_int("transB", 0) else other
    if one[1] != other[0]:
        text = f"the columns of A {shape_text(one)}, expected the rows of B {shape_text(other)}"
        return f"{text}, both as transA and transB make them"
    return _fits("C", _input(shapes, 2), (one[0], other[1]))


def _channels(node: ir.Node, shapes: list[Shape | None]) -> str | None:
    """Check the parameters of a normalization, one for each channel."""
    image = shapes[0] or ()
    if len(image) < 2:
        return f"input: shape, expected at least 2 axes, found {shape_text(image)}"
    groups = node.attributes.get_int("num_groups", 1)
    if image[1] % groups:
        return f"num_groups, expected a divisor of {image[1]} channels, found {groups}"
    for index, shape in enumerate(shapes[1:], 1):
        # Until opset 21, GroupNormalization had one parameter for each group.
        if groups == 1 or shape != (groups,) or node.graph.opset_imports[""] >= 21:
            text = _equal(f"input {index}", shape, (image[1],))
            if text:
                return text
    return None


def _rows(node: ir.Node, shapes: list[Shape | None]) -> str | None:
    """Check the parameters of a normalization of the axes from `axis` on."""
    shape = shapes[0] or ()
    axis = node.attributes.get_int("axis", -1)
    if not -len(shape) <= axis < len(shape):
        return f"axis, expected -{len(shape)} to {len(shape) - 1}, found {axis}"
    found = (_fits(f"input {index}", one, shape) for index, one in enumerate(shapes[1:], 1))
    return next((text for text in found if text), None)


def _slope(node: ir.Node, shapes: list[Shape | None]) -> str | None:
    if node.graph.opset_imports[""] < 7:  # then it is one for each channel
        return None
    return _fits("slope", shapes[1], shapes[0] or ())


def _gather(node: ir.Node, shapes: list[Shape | None], indices: Any) -> str | None:
    shape = shapes[0] or ()
    extent = shape[node.attributes.get_int("axis", 0)]
    if not indices.size or (indices.min() >= -extent and indices.max() < extent):
        return None
    text = f"indices, expected -{extent} to {extent - 1}, found {indices.min()} to"
    return f"{text} {indices.max()}"


def _permuted(node: ir.Node, shapes: list[Shape | None]) -> str | None:
    axes = list(range(len(shapes[0] or ())))
    perm = list(node.attributes.get_ints("perm", axes))
    if sorted(perm) == axes:
        return None
    return f"perm, expected each of {len(axes)} axes once, found {perm}"


def _recurrent(gates: int) -> Callable[[ir.Node, list[Shape | None]], str | None]:
    def rule(node: ir.Node, shapes: list[Shape | None]) -> str | None:
        weight, recurrence = shapes[1] or (), shapes[2] or ()
        sequence = shapes[0] or ()
        if len(sequence) != 3 or len(weight) != 3 or len(recurrence) != 3:
            return "X, W and R, expected 3 axes each"
        directions = (
            2 if node.attributes.get_string("direction", "forward") == "bidirectional" else 1
        )
        hidden = node.attributes.get_int("hidden_size", recurrence[2])
        return (
            _equal("W", weight, (directions, gates * hidden, sequence[2]))
            or _equal("R", recurrence, (directions, gates * hidden, hidden))
            or _equal("B", _input(shapes, 3), (directions, 2 * gates * hidden))
        )

    return rule


def _positions(weight: int, bias: int) -> Callable[[ir.Node, list[Shape | None]], str | None]:
    return lambda node, shapes: _convolution(node, shapes, weight, bias)


_RULES: dict[str, Callable[[ir.Node, list[Shape | None]], str | None]] = {
    "Conv": _positions(1, 2),
    "ConvTranspose": _positions(1, 2),
    "ConvInteger": _positions(1, 9),
    "QLinearConv": _positions(3, 8),
    "Gemm": _gemm,
    "BatchNormalization": _channels,
    "InstanceNormalization": _channels,
    "GroupNormalization": _channels,
    "LayerNormalization": _rows,
    "RMSNormalization": _rows,
    "PRelu": _slope,
    "Transpose": _permuted,
    "RNN": _recurrent(1),
    "GRU": _recurrent(3),
    "LSTM": _recurrent(4),
}
