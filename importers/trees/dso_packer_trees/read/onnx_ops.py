"""The operators of ONNX that become steps, by name.

Each gets the steps, the inputs (columns or constant arrays, None if left out) and the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..steps import Columns, Op, Steps

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]
_INTEGERS = (2, 3, 4, 5, 6, 7, 12, 13)  # of TensorProto.DataType
_FLOAT, _TEXT, _BOOL, _DOUBLE = 1, 8, 9, 11
# The functions of all operators but these have one operand or two.
_ONE = {
    "Abs": Op.ABS,
    "Exp": Op.EXP,
    "IsNaN": Op.IS_NAN,
    "Log": Op.LOG,
    "Sigmoid": Op.LOGISTIC,
    "Sign": Op.SIGN,
    "Sqrt": Op.SQRT,
    "Tanh": Op.TANH,
}
_TWO = {
    "Add": Op.ADD,
    "Sum": Op.ADD,
    "Sub": Op.SUB,
    "Mul": Op.MUL,
    "And": Op.MUL,
    "Div": Op.DIV,
    "Pow": Op.POW,
    "Min": Op.LEAST,
    "Max": Op.GREATEST,
    "Or": Op.GREATEST,
    "Less": Op.LESS,
    "LessOrEqual": Op.LESS_EQUAL,
    "Equal": Op.EQUAL,
}


def _columns(steps: Steps, x: Any) -> Columns:
    return x if isinstance(x, Columns) else steps.constant(x)


def _fold(op: Op, steps: Steps, inputs: Inputs, _: Attributes) -> Columns:
    first, *others = map(_checked, inputs)
    for other in others:
        first = steps.each(op, first, other)
    return _columns(steps, first)


def _checked(x: Any) -> Any:
    """Refuse a constant that has a value for each row."""
    if isinstance(x, np.ndarray) and x.ndim > 1 and x.size != x.shape[-1]:
        raise ValueError(f"a constant {list(x.shape)}, expected one row")
    return x


def _one(op: Op, steps: Steps, inputs: Inputs, _: Attributes) -> Columns:
    return steps.each(op, inputs[0])


def same(_steps: Steps, inputs: Inputs, _: Attributes) -> Any:
    """Keep the first input."""
    return inputs[0]


def _cast(steps: Steps, inputs: Inputs, attributes: Attributes) -> Any:
    to = int(attributes["to"])
    if to == _TEXT:
        raise ValueError("a text, expected a number")
    if to == _BOOL:
        return _not(steps, [steps.each(Op.EQUAL, inputs[0], 0.0)], {})
    if to in _INTEGERS:
        return steps.each(Op.TRUNC, inputs[0])
    if to != _FLOAT and (to, steps.dtype) != (_DOUBLE, "float64"):
        raise ValueError(f"type {to} of {steps.dtype}, expected float; give double inputs")
    return rounded(steps, inputs[0]) if to == _FLOAT else inputs[0]


def rounded(steps: Steps, x: Columns) -> Columns:
    """Round to float32."""
    return steps.each(Op.FLOAT32, x) if steps.dtype == "float64" else x


def _reshape(steps: Steps, inputs: Inputs, _: Attributes) -> Columns:
    """Keep a row a row."""
    x, shape = inputs[0], inputs[1].tolist()
    if shape[0] not in (-1, 0) or np.prod(shape[1:]) not in (x.width, -1):
        raise ValueError(f"shape {shape}, expected [-1, {x.width}]")
    return steps.copy(x, np.arange(x.width))


def _flat(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    """Keep a row with an axis more or less."""
    axes = attributes.get("axes", attributes.get("axis", 1))
    axes = np.asarray(inputs[1] if len(inputs) > 1 else axes).reshape(-1)
    if 0 in axes.tolist():
        raise ValueError("axis 0, expected another one")
    return steps.copy(inputs[0], np.arange(inputs[0].width))


def concat(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    """Put the columns of inputs one after the other."""
    if attributes.get("axis", 1) == 0:
        raise ValueError("axis 0, expected the last one")
    return steps.join([_columns(steps, x) for x in inputs])


def choose(axis: int, steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    """Choose columns; `axis` is the default."""
    if attributes.get("axis", axis) not in (1, -1) or not isinstance(inputs[1], np.ndarray):
        raise ValueError("axis or indices, expected the last one and constants")
    index = inputs[1].reshape(-1)
    return steps.copy(inputs[0], np.where(index < 0, index + inputs[0].width, index))


def _matmul(steps: Steps, inputs: Inputs, _: Attributes) -> Columns:
    return steps.matmul(inputs[0], inputs[1] if inputs[1].ndim == 2 else inputs[1][:, None])


def _gemm(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    matrix = inputs[1].T if attributes.get("transB") else inputs[1]
    if attributes.get("transA"):
        raise ValueError("transA, expected rows")
    found = steps.matmul(inputs[0], matrix * attributes.get("alpha", 1.0))
    if len(inputs) < 3 or inputs[2] is None:
        return found
    return steps.each(Op.ADD, found, _checked(inputs[2]) * attributes.get("beta", 1.0))


def _clip(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    low, high = ([*inputs[1:], None, None])[:2]
    low = attributes.get("min") if low is None else low
    high = attributes.get("max") if high is None else high
    x = inputs[0] if low is None else steps.each(Op.GREATEST, inputs[0], low)
    return x if high is None else steps.each(Op.LEAST, x, high)


def _not(steps: Steps, inputs: Inputs, _: Attributes) -> Columns:
    return steps.each(Op.SUB, 1.0, inputs[0])


def _swapped(op: Op, steps: Steps, inputs: Inputs, _: Attributes) -> Columns:
    return steps.each(op, inputs[1], inputs[0])


def _softmax(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    if attributes.get("axis", -1) not in (1, -1):
        raise ValueError("axis, expected the last one")
    return steps.run(Op.SOFTMAX, inputs[0], inputs[0].width)


def _check_axes(inputs: Inputs, attributes: Attributes) -> None:
    axes = np.asarray(inputs[1] if len(inputs) > 1 else attributes.get("axes", 0)).reshape(-1)
    if axes.tolist() not in ([1], [-1]):
        raise ValueError("axes, expected the last one")


def _sum(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    _check_axes(inputs, attributes)
    return steps.matmul(inputs[0], np.ones((inputs[0].width, 1)))


def _product(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    _check_axes(inputs, attributes)
    found: Columns = inputs[0].part(0, 1)
    for i in range(1, inputs[0].width):
        found = steps.each(Op.MUL, found, inputs[0].part(i, 1))
    return found


OPS: dict[str, Callable[[Steps, Inputs, Attributes], Any]] = {
    **{name: partial(_one, op) for name, op in _ONE.items()},
    **{name: partial(_fold, op) for name, op in _TWO.items()},
    "Greater": partial(_swapped, Op.LESS),
    "GreaterOrEqual": partial(_swapped, Op.LESS_EQUAL),
    "Identity": same,
    "Cast": _cast,
    "Reshape": _reshape,
    "Flatten": _flat,
    "Squeeze": _flat,
    "Unsqueeze": _flat,
    "Concat": concat,
    "Gather": partial(choose, 0),
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Clip": _clip,
    "Relu": lambda steps, inputs, _: steps.each(Op.GREATEST, inputs[0], 0.0),
    "Neg": lambda steps, inputs, _: steps.each(Op.MUL, inputs[0], -1.0),
    "Reciprocal": lambda steps, inputs, _: steps.each(Op.DIV, 1.0, inputs[0]),
    "Where": lambda steps, inputs, _: steps.each(Op.WHERE, *map(_checked, inputs)),
    "Not": _not,
    "Softmax": _softmax,
    "ReduceProd": _product,
    "ReduceSum": _sum,
}
