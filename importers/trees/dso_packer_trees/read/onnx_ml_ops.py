"""The operators of ONNX-ML that become steps, by name, as in `onnx_ops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..steps import Columns, Op, Steps
from .onnx_ops import Attributes, Inputs, choose, concat, rounded, same
from .vectors import Kernel, kernel_values, pair_values, probabilities

_NORMS = {"MAX": Op.NORM_MOST, "L1": Op.NORM_L1, "L2": Op.NORM_L2}
_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX")
# Their results are float32, of inputs of any type.
FLOATS = (
    *("FeatureVectorizer", "LinearClassifier", "LinearRegressor", "Normalizer", "Scaler"),
    *("SVMClassifier", "SVMRegressor"),
)


def _array(attributes: Attributes, *names: str) -> Any:
    """Return the first of some attributes that is there, as numbers."""
    for name in names:
        if len(attributes.get(name, ())):
            return np.asarray(attributes[name], np.float64)
    raise ValueError(f"no attribute {' or '.join(names)}")


def _text(attributes: Attributes, name: str, default: str) -> str:
    return bytes(attributes.get(name, default.encode())).decode()


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


ML_OPS: dict[str, Callable[[Steps, Inputs, Attributes], Any]] = {
    "ArrayFeatureExtractor": partial(choose, 1),
    "Binarizer": _binarizer,
    "FeatureVectorizer": concat,
    "Imputer": _imputer,
    "LabelEncoder": _labels,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaler,
    "SVMClassifier": _vector_classifier,
    "SVMRegressor": _vector_regressor,
    "ZipMap": same,
}
