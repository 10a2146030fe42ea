"""The symbolic batch: which operators treat its entries one by one, and the shapes of one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import element_bits
from ..operator import shape_of
from .one_node import results
from .refused import refuse

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Shape

# Operators whose attribute `axis`, with its default here, says what they combine.
_AXIS = {
    "ArgMax": 0, "ArgMin": 0, "Concat": None, "Hardmax": -1, "LayerNormalization": -1,
    "LogSoftmax": -1, "LpNormalization": -1, "RMSNormalization": -1, "Softmax": -1, "Split": 0,
    "TopK": -1, "DequantizeLinear": 1, "QuantizeLinear": 1, "GatherElements": 0,
}  # fmt: skip
# Operators whose axes are a constant input, by its position; without it all axes.
_AXES_INPUT = {
    "ReduceL1": 1, "ReduceL2": 1, "ReduceLogSum": 1, "ReduceLogSumExp": 1, "ReduceMax": 1,
    "ReduceMean": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceSum": 1, "ReduceSumSquare": 1,
    "Slice": 3, "CumSum": 1, "CumProd": 1,
}  # fmt: skip
# Operators whose first axis is that of the images or rows.
_BY_ENTRY = {
    "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "DepthToSpace", "Det",
    "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample", "GroupNormalization",
    "InstanceNormalization", "LRN", "LpPool", "MaxPool", "QLinearConv", "SpaceToDepth",
    "BatchNormalization", "Attention", "Expand", "Reshape", "RotaryEmbedding",
}  # fmt: skip
_ELEMENTWISE = {
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu",
    "Clip", "Cos", "Cosh", "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu",
    "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu",
    "Pow", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu",
    "Where", "Xor",
}  # fmt: skip


def one_entry(node: ir.Node) -> tuple[dict[ir.Value, Shape], str]:
    """Return the shapes of a node's values for one entry of the batch.

    Parameters
    ----------
    node : ir.Node
        Of values with shapes.

    Returns
    -------
    dict of ir.Value to tuple of int
        With 1 for the symbolic extent.
    str
        The symbol of the batch; "" if every extent is known.

    Raises
    ------
    OperatorRefusedError
        The operator combines entries, or is not known to leave them apart.
    """
    inputs = [v for v in node.inputs if v is not None and v.name]
    shapes = {value: shape_of(value) for value in (*inputs, *results(node))}
    symbolic = [v for v, shape in shapes.items() if any(isinstance(d, str) for d in shape)]
    if symbolic:
        if all(value in node.outputs for value in symbolic):
            raise refuse(node, "shape", f"value {symbolic[0].name!r}")
        for value in symbolic:
            leads = isinstance(shapes[value][0], str)
            if not leads or any(isinstance(extent, str) for extent in shapes[value][1:]):
                raise refuse(node, "open", f"value {value.name!r}")
            if element_bits(value) < 8:
                raise refuse(node, "dtype", f"value {value.name!r}")
        if not _keeps_entries_apart(node, shapes) or not set(results(node)) <= set(symbolic):
            raise refuse(node, "open")
    fixed: dict[ir.Value, Shape] = {
        v: tuple(1 if isinstance(d, str) else d for d in s) for v, s in shapes.items()
    }
    symbols = {extent for shape in shapes.values() for extent in shape if isinstance(extent, str)}
    if len(symbols) > 1 or any(not symbol.isidentifier() for symbol in symbols):
        raise refuse(node, "open")
    return fixed, next(iter(symbols), "")


def _keeps_entries_apart(node: ir.Node, shapes: dict[ir.Value, Shape]) -> bool:
    """Return True if entry i of the results depends on entry i of the inputs only."""
    operator, rank = node.op_type, len(shapes[results(node)[0]])
    inputs = [value for value in node.inputs if value is not None]
    same_rank = all(
        len(shapes[v]) == rank if _is_symbolic(shapes[v]) else _is_shared(shapes[v], rank)
        for v in inputs
    )
    if node.domain not in ("", "ai.onnx"):
        return False
    if operator in _ELEMENTWISE:
        return same_rank
    if operator in _AXIS:
        axis = _attribute(node, "axis", _AXIS[operator])
        return same_rank and axis is not None and axis % max(rank, 1) != 0
    if operator in _AXES_INPUT:
        axes = _axes(node, _AXES_INPUT[operator])
        rank = len(shapes[inputs[0]])
        return axes is not None and all(axis % rank != 0 for axis in axes)
    by_rule = _RULES.get(operator)
    return by_rule(node, inputs, shapes) if by_rule else operator in _BY_ENTRY


def _is_shared(shape: Shape, rank: int) -> bool:
    """Return True if a fixed input is the same for each entry of a result."""
    return len(shape) < rank or rank == 0 or shape[0] == 1


def _transpose(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    return "perm" in node.attributes and _attribute(node, "perm", [])[0] == 0


def _matmul(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    rank = len(shapes[results(node)[0]])
    if rank == 2:
        return not _is_symbolic(shapes[inputs[1]])
    return all(not _is_symbolic(shapes[v]) or len(shapes[v]) == rank for v in inputs)


def _gemm(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    c_fits = len(inputs) < 3 or not _is_symbolic(shapes[inputs[2]]) or len(shapes[inputs[2]]) == 2
    return not _attribute(node, "transA", 0) and not _is_symbolic(shapes[inputs[1]]) and c_fits


def _gather(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    axis = _attribute(node, "axis", 0) % len(shapes[inputs[0]])
    if not _is_symbolic(shapes[inputs[0]]):
        return bool(axis == 0)
    return axis != 0 and not _is_symbolic(shapes[inputs[1]])


def _pad(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    value = node.inputs[1] if len(node.inputs) > 1 else None
    if value is None or value.const_value is None:
        return False
    rank = len(shapes[results(node)[0]])
    pads = [int(pad) for pad in value.const_value.numpy().reshape(-1)]
    axes = _axes(node, 3) or list(range(rank))
    first = [i for i, axis in enumerate(axes) if axis % rank == 0]
    return all(pads[i] == 0 and pads[i + len(axes)] == 0 for i in first)


def _resize(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    return 0 not in _attribute(node, "axes", [1])


def _roi_align(node: ir.Node, inputs: list[ir.Value], shapes: dict[ir.Value, Shape]) -> bool:
    return not _is_symbolic(shapes[inputs[0]])


_RULES = {
    "Gather": _gather,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Pad": _pad,
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "Transpose": _transpose,
}


def _is_symbolic(shape: Shape) -> bool:
    return any(isinstance(extent, str) for extent in shape)


def _attribute(node: ir.Node, name: str, default: Any) -> Any:
    found = node.attributes.get(name)
    return default if found is None else found.value


def _axes(node: ir.Node, index: int) -> list[int] | None:
    """Return the axes of a constant input, or of the attribute of older operators."""
    found = node.attributes.get("axes")
    if found is not None:
        return list(found.as_ints())
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.const_value is None:
        return None
    return [int(axis) for axis in value.const_value.numpy().reshape(-1)]
