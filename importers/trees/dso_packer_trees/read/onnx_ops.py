"""The operators of ONNX and ONNX-ML that become steps, by name.

Each gets the steps, the inputs (columns or constant arrays, None if left out) and the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..steps import Columns, Op, Steps
from .vectors import Kernel, kernel_values, pair_values, probabilities

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]
_NORMS = {"MAX": Op.NORM_MOST, "L1": Op.NORM_L1, "L2": Op.NORM_L2}
_INTEGERS = (2, 3, 4, 5, 6, 7, 12, 13)  # of TensorProto.DataType
_FLOAT, _TEXT, _BOOL, _DOUBLE = 1, 8, 9, 11
_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX")
# Their results are float32, of inputs of any type.
FLOATS = (
    *("FeatureVectorizer", "LinearClassifier", "LinearRegressor", "Normalizer", "Scaler"),
    *("SVMClassifier", "SVMRegressor"),
)
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


def _text(attributes: Attributes, name: str, default: str) -> str:
    return bytes(attributes.get(name, default.encode())).decode()


def _array(attributes: Attributes, *names: str) -> Any:
    """Return the first of some attributes that is there, as numbers."""
    for name in names:
        if len(attributes.get(name, ())):
            return np.asarray(attributes[name], np.float64)
    raise ValueError(f"no attribute {' or '.join(names)}")


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


def _same(_steps: Steps, inputs: Inputs, _: Attributes) -> Any:
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


def _concat(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    if attributes.get("axis", 1) == 0:
        raise ValueError("axis 0, expected the last one")
    return steps.join([_columns(steps, x) for x in inputs])


def _choose(axis: int, steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
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


# ---- ai.onnx.ml


def _scaler(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    x = inputs[0]
    if len(attributes.get("offset", ())):
        x = rounded(steps, steps.each(Op.SUB, x, _array(attributes, "offset")))
    return steps.each(Op.MUL, x, _array(attributes, "scale")) if "scale" in attributes else x


def _normalizer(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    norm = steps.run(_NORMS[_text(attributes, "norm", "MAX")], inputs[0], 1)
    return steps.each(Op.DIV, inputs[0], norm)


def _imputer(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    replaced = attributes.get("replaced_value_float", attributes.get("replaced_value_int64", 0.0))
    values = _array(attributes, "imputed_value_floats", "imputed_value_int64s")
    is_nan = replaced != replaced
    missing = (
        steps.each(Op.IS_NAN, inputs[0]) if is_nan else steps.each(Op.EQUAL, inputs[0], replaced)
    )
    return steps.each(Op.WHERE, missing, values, inputs[0])


def _one_hot(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    keys = _array(attributes, "cats_int64s")
    if inputs[0].width != 1:
        raise ValueError(f"{inputs[0].width} columns, expected one")
    x = steps.each(Op.TRUNC, inputs[0])
    if not attributes.get("zeros", 1):
        x = steps.look_up(x, [(keys, keys)], None)
    return steps.each(Op.EQUAL, x, keys)


def _labels(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    if any("string" in name for name in attributes):
        raise ValueError("texts, expected numbers")
    keys = _array(attributes, "keys_floats", "keys_int64s")
    if attributes["version"] < 4 and np.isnan(keys).any():  # which ONNX Runtime never finds
        raise ValueError("a key NaN, expected opset 4 of ai.onnx.ml")
    values = _array(attributes, "values_floats", "values_int64s")
    is_float = "values_floats" in attributes
    default = (
        attributes.get("default_float", -0.0) if is_float else attributes.get("default_int64", -1)
    )
    return steps.look_up(inputs[0], [(keys, values)] * inputs[0].width, [default] * inputs[0].width)


def _binarizer(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    return steps.each(Op.LESS, float(attributes.get("threshold", 0.0)), inputs[0])


def _transformed(
    steps: Steps, x: Columns, attributes: Attributes, choices: Sequence[str] = _TRANSFORMS
) -> Columns:
    """Apply a post_transform: `choices` are the ones that ONNX Runtime applies to each column."""
    steps.raw_out = x
    transform = _text(attributes, "post_transform", "NONE")
    if transform not in choices:
        raise ValueError(f"post_transform {transform}, expected {' or '.join(choices)}")
    if transform == "LOGISTIC":
        return steps.each(Op.LOGISTIC, x)
    return x if transform == "NONE" else steps.run(Op.SOFTMAX, x, x.width)


def _classes(steps: Steps, attributes: Attributes) -> None:
    labels = attributes.get("classlabels_ints") or attributes.get("classlabels_strings") or ()
    steps.classes = [x.decode() if isinstance(x, bytes) else str(x) for x in labels]


def _linear(steps: Steps, x: Columns, attributes: Attributes, count: int) -> Columns:
    coefficients = _array(attributes, "coefficients").reshape(count, -1)
    found = steps.matmul(x, coefficients.T)
    if not len(attributes.get("intercepts", ())):
        return found
    return steps.each(Op.ADD, found, _array(attributes, "intercepts"))


def _linear_classifier(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    _classes(steps, attributes)
    count = len(attributes["coefficients"]) // inputs[0].width
    choices = _TRANSFORMS[:2] if count == 1 else _TRANSFORMS
    found = _transformed(steps, _linear(steps, inputs[0], attributes, count), attributes, choices)
    if count == 1 and len(steps.classes) == 2:
        return steps.join([steps.each(Op.SUB, 1.0, found), found])
    return found


def _linear_regressor(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    found = _linear(steps, inputs[0], attributes, int(attributes.get("targets", 1)))
    return _transformed(steps, found, attributes, _TRANSFORMS[: 1 if found.width == 1 else 3])


def _kernel(steps: Steps, x: Columns, attributes: Attributes) -> Columns:
    gamma, coef0, degree = _array(attributes, "kernel_params")
    kind = _text(attributes, "kernel_type", "LINEAR").lower()
    vectors = _array(attributes, "support_vectors").reshape(-1, x.width)
    return kernel_values(steps, x, vectors, Kernel(kind, gamma, coef0, degree))


def _vector_regressor(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    if attributes.get("one_class"):
        raise ValueError("one_class, expected 0")
    coefficients = _array(attributes, "coefficients")[:, None]
    is_linear = not attributes.get("n_supports")
    values = inputs[0] if is_linear else _kernel(steps, inputs[0], attributes)
    found = steps.each(Op.ADD, steps.matmul(values, coefficients), _array(attributes, "rho"))
    return _transformed(steps, found, attributes, _TRANSFORMS[:1])


def _vector_classifier(steps: Steps, inputs: Inputs, attributes: Attributes) -> Columns:
    counts = np.asarray(attributes.get("vectors_per_class", ()), np.int64)
    if len(counts) < 2:
        raise ValueError("no support vectors, expected a kernel or a LinearClassifier")
    values = _kernel(steps, inputs[0], attributes)
    _classes(steps, attributes)
    coefficients = _array(attributes, "coefficients").reshape(len(counts) - 1, -1)
    pairs = pair_values(steps, values, coefficients, counts, _array(attributes, "rho"))
    if len(attributes.get("prob_a", ())):
        a, b = _array(attributes, "prob_a"), _array(attributes, "prob_b")
        return probabilities(steps, pairs, a, b, len(counts))
    if len(counts) == 2:
        pairs = steps.join([steps.each(Op.MUL, pairs, -1.0), pairs])
    return _transformed(steps, pairs, attributes, _TRANSFORMS[: len(counts)])


OPS: dict[str, Callable[[Steps, Inputs, Attributes], Any]] = {
    **{name: partial(_one, op) for name, op in _ONE.items()},
    **{name: partial(_fold, op) for name, op in _TWO.items()},
    "Greater": partial(_swapped, Op.LESS),
    "GreaterOrEqual": partial(_swapped, Op.LESS_EQUAL),
    "Identity": _same,
    "Cast": _cast,
    "Reshape": _reshape,
    "Flatten": _flat,
    "Squeeze": _flat,
    "Unsqueeze": _flat,
    "Concat": _concat,
    "Gather": partial(_choose, 0),
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
    "ArrayFeatureExtractor": partial(_choose, 1),
    "Binarizer": _binarizer,
    "FeatureVectorizer": _concat,
    "Imputer": _imputer,
    "LabelEncoder": _labels,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaler,
    "SVMClassifier": _vector_classifier,
    "SVMRegressor": _vector_regressor,
    "ZipMap": _same,
}
