"""Fitted transformers of scikit-learn as steps: scalers, imputers, encoders of numbers, PCA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from packer import ExportError

from ..steps import Columns, Op, Steps

Transform = Callable[[Any, Steps, Columns], Columns]
_NORMS = {"l1": Op.NORM_L1, "l2": Op.NORM_L2, "max": Op.NORM_MOST}
_FUNCTIONS = {
    np.abs: Op.ABS,
    np.sqrt: Op.SQRT,
    np.exp: Op.EXP,
    np.log: Op.LOG,
    np.log1p: Op.LOG1P,
    np.tanh: Op.TANH,
    np.sign: Op.SIGN,
    np.trunc: Op.TRUNC,
}


def transform(model: Any, steps: Steps, x: Columns, where: str) -> Columns:
    """Add the steps of a fitted transformer, or of several in a row or beside each other.

    Raises ExportError if it is not supported; names it.
    """
    if model is None or model == "passthrough":
        return x
    name = type(model).__name__
    if name == "Pipeline":
        for part_name, part in model.steps:
            x = transform(part, steps, x, f"{where}: {part_name}")
        return x
    if name == "FeatureUnion":
        parts = [(part_name, part, range(x.width)) for part_name, part in model.transformer_list]
        return _joined(model, parts, steps, x, where)
    if name == "ColumnTransformer":
        columns = model._transformer_to_input_indices
        fitted = [
            (part_name, part, columns[part_name]) for part_name, part, _ in model.transformers_
        ]
        return _joined(model, fitted, steps, x, where)
    if not is_transformer(model):
        names = ", ".join(("feature selection", *_TRANSFORMS))
        raise ExportError(f"{where}: {name} is not supported, expected one of {names}")
    return _TRANSFORMS.get(name, _selected)(model, steps, x)


def is_transformer(model: Any) -> bool:
    """Return True if a model is a transformer of scikit-learn that `transform` knows."""
    if not type(model).__module__.startswith("sklearn."):
        return False
    is_selector = any(cls.__name__ == "SelectorMixin" for cls in type(model).__mro__)
    return is_selector or type(model).__name__ in (*_TRANSFORMS, *_SEVERAL)


def _joined(model: Any, parts: Any, steps: Steps, x: Columns, where: str) -> Columns:
    made, weights = [], model.transformer_weights or {}
    for name, part, columns in parts:
        is_dropped = isinstance(part, str) and part == "drop"
        if not is_dropped and len(columns):
            one = transform(part, steps, steps.copy(x, list(columns)), f"{where}: {name}")
            made.append(steps.each(Op.MUL, one, weights[name]) if name in weights else one)
    if not made:
        raise ExportError(f"{where}: all columns are dropped, expected at least one")
    return steps.join(made)


def is_sparse(model: Any, is_given: bool = False) -> bool:
    """Return True if a transformer makes a sparse matrix; `is_given`: if its rows are one."""
    name = type(model).__name__
    if name == "Pipeline":
        for _, part in model.steps:
            is_given = is_sparse(part, is_given)
        return is_given
    if name == "FeatureUnion":
        return any(is_sparse(part, is_given) for _, part in model.transformer_list)
    choices = {"ColumnTransformer": "sparse_output_", "OneHotEncoder": "sparse_output"}
    if name in choices:
        return bool(getattr(model, choices[name]))
    if name == "KBinsDiscretizer":
        return bool(model.encode == "onehot")
    return is_given and not hasattr(model, "components_")


def _standard(model: Any, steps: Steps, x: Columns) -> Columns:
    x = steps.each(Op.SUB, x, model.mean_) if model.with_mean else x
    return steps.each(Op.DIV, x, model.scale_) if model.with_std else x


def _min_max(model: Any, steps: Steps, x: Columns) -> Columns:
    x = steps.each(Op.ADD, steps.each(Op.MUL, x, model.scale_), model.min_)
    if not model.clip:
        return x
    low, high = model.feature_range
    return steps.each(Op.LEAST, steps.each(Op.GREATEST, x, low), high)


def _max_abs(model: Any, steps: Steps, x: Columns) -> Columns:
    x = steps.each(Op.DIV, x, model.scale_)
    if not getattr(model, "clip", False):
        return x
    return steps.each(Op.LEAST, steps.each(Op.GREATEST, x, -1.0), 1.0)


def _robust(model: Any, steps: Steps, x: Columns) -> Columns:
    x = steps.each(Op.SUB, x, model.center_) if model.with_centering else x
    return steps.each(Op.DIV, x, model.scale_) if model.with_scaling else x


def _normalizer(model: Any, steps: Steps, x: Columns) -> Columns:
    sizes = steps.each(Op.ABS, x) if model.norm == "max" else x
    return steps.each(Op.DIV, x, steps.run(_NORMS[model.norm], sizes, 1))


def _binarizer(model: Any, steps: Steps, x: Columns) -> Columns:
    return steps.each(Op.LESS, model.threshold, x)


def is_missing(steps: Steps, x: Columns, value: Any) -> Columns:
    """Return 1 for each column that is missing."""
    if value is None or value != value:
        return steps.each(Op.IS_NAN, x)
    return steps.each(Op.EQUAL, x, float(value))


def _imputer(model: Any, steps: Steps, x: Columns) -> Columns:
    values = np.asarray(model.statistics_, np.float64)
    kept = np.nonzero(~np.isnan(values) | model.keep_empty_features)[0]
    missing = is_missing(steps, x, model.missing_values)
    filled = steps.each(Op.WHERE, steps.copy(missing, kept), values[kept], steps.copy(x, kept))
    if model.indicator_ is None or not len(model.indicator_.features_):
        return filled
    return steps.join([filled, steps.copy(missing, model.indicator_.features_)])


def _indicator(model: Any, steps: Steps, x: Columns) -> Columns:
    return steps.copy(is_missing(steps, x, model.missing_values), model.features_)


def _numbers(model: Any) -> list[Any]:
    """Return the categories of each column.

    Raises ExportError if they are texts.
    """
    found = [np.asarray(categories) for categories in model.categories_]
    for i, categories in enumerate(found):
        if categories.dtype.kind not in "iufb":
            text = f"categories of column {i} are texts, expected numbers; encode them before"
            raise ExportError(f"{type(model).__name__}: {text}")
    return found


def _groups(model: Any, i: int, count: int) -> tuple[Any, Any]:
    """Return the codes of the categories of a column, and of the infrequent ones or None."""
    mapping = getattr(model, "_default_to_infrequent_mappings", None)
    codes = mapping[i] if mapping is not None and mapping[i] is not None else None
    if codes is None:
        return np.arange(count), None
    return np.asarray(codes), int(np.max(codes))


def _one_hot(model: Any, steps: Steps, x: Columns) -> Columns:
    categories = _numbers(model)
    drop = getattr(model, "_drop_idx_after_grouping", model.drop_idx_)
    unknown, tables, columns, codes = [], [], [], []
    for i, keys in enumerate(categories):
        of_keys, infrequent = _groups(model, i, len(keys))
        is_grouped = model.handle_unknown in ("infrequent_if_exist", "warn")
        unknown.append(-1.0 if infrequent is None or not is_grouped else float(infrequent))
        tables.append((keys, of_keys))
        dropped = None if drop is None else drop[i]
        kept = [code for code in range(int(of_keys.max()) + 1) if code != dropped]
        columns += [i] * len(kept)
        codes += kept
    found = _encoded(model, steps, x, tables, unknown)
    return steps.each(Op.EQUAL, steps.copy(found, columns), np.asarray(codes))


def _ordinal(model: Any, steps: Steps, x: Columns) -> Columns:
    tables = []
    for i, keys in enumerate(_numbers(model)):
        is_number = keys == keys  # NaN has no group
        codes = np.full(len(keys), model.encoded_missing_value, np.float64)
        codes[is_number] = _groups(model, i, len(keys))[0][: is_number.sum()]
        tables.append((keys, codes))
    unknown = model.unknown_value
    return _encoded(model, steps, x, tables, [unknown] * len(tables))


def _encoded(model: Any, steps: Steps, x: Columns, tables: Any, unknown: Any) -> Columns:
    """Return the codes of categories; each column has a code of an unknown one."""
    if model.handle_unknown == "error":
        return steps.look_up(x, tables, None)
    return steps.look_up(x, tables, unknown)


def _bins(model: Any, steps: Steps, x: Columns) -> Columns:
    edges = [np.asarray(edges)[1:-1] for edges in model.bin_edges_]
    columns = np.repeat(np.arange(len(edges)), [len(one) for one in edges])
    if len(columns):
        passed = steps.each(Op.LESS_EQUAL, np.concatenate(edges), steps.copy(x, columns))
        found = steps.matmul(passed, columns[:, None] == np.arange(len(edges)))
    else:
        found = steps.constant(np.zeros(len(edges)))
    return found if model.encode == "ordinal" else _one_hot(model._encoder, steps, found)


def _polynomial(model: Any, steps: Steps, x: Columns) -> Columns:
    """Multiply as many columns as the degree, of which the last one is 1."""
    powers = np.asarray(model.powers_)
    factors = np.full((len(powers), max(int(powers.sum(axis=1).max()), 1)), x.width)
    for row, of_row in zip(factors, powers, strict=True):
        found = np.repeat(np.arange(x.width), of_row)
        row[: len(found)] = found
    with_one = steps.join([x, steps.constant([1.0])])
    made = steps.copy(with_one, factors[:, 0])
    for index in factors.T[1:]:
        made = steps.each(Op.MUL, made, steps.copy(with_one, index))
    return made


def _power(model: Any, steps: Steps, x: Columns) -> Columns:
    lambdas = np.asarray(model.lambdas_)
    if model.method == "box-cox":
        made = _box_cox(steps, x, lambdas)
    else:
        positive = _box_cox(steps, steps.each(Op.ADD, x, 1.0), lambdas)
        mirrored = _box_cox(steps, steps.each(Op.SUB, 1.0, x), 2 - lambdas)
        is_negative = steps.each(Op.LESS, x, 0.0)
        made = steps.each(Op.WHERE, is_negative, steps.each(Op.MUL, mirrored, -1.0), positive)
    return _standard(model._scaler, steps, made) if model.standardize else made


def _box_cox(steps: Steps, x: Columns, lambdas: Any) -> Columns:
    """Return ``(x ** lambda - 1) / lambda``, and the logarithm where lambda is 0."""
    is_zero = np.abs(lambdas) < np.spacing(1.0)
    divisor = np.where(is_zero, 1.0, lambdas)
    powers = steps.each(Op.SUB, steps.each(Op.POW, x, lambdas), 1.0)
    return steps.each(Op.WHERE, is_zero, steps.each(Op.LOG, x), steps.each(Op.DIV, powers, divisor))


def _projection(model: Any, steps: Steps, x: Columns) -> Columns:
    mean = getattr(model, "mean_", None)
    made = steps.matmul(x, model.components_.T)
    if mean is not None:
        made = steps.each(Op.SUB, made, np.asarray(mean) @ model.components_.T)
    if not getattr(model, "whiten", False) or not hasattr(model, "explained_variance_"):
        return made
    scale = np.sqrt(model.explained_variance_)
    return steps.each(Op.DIV, made, np.maximum(scale, np.finfo(scale.dtype).eps))


def _function(model: Any, steps: Steps, x: Columns) -> Columns:
    if model.func is None:
        return x
    if model.func not in _FUNCTIONS or model.kw_args:
        names = ", ".join(function.__name__ for function in _FUNCTIONS)
        text = f"FunctionTransformer of {model.func!r}, expected None or NumPy's {names}"
        raise ExportError(text)
    return steps.each(_FUNCTIONS[model.func], x)


def _selected(model: Any, steps: Steps, x: Columns) -> Columns:
    return steps.copy(x, model.get_support(indices=True))


_TRANSFORMS: dict[str, Transform] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "Normalizer": _normalizer,
    "Binarizer": _binarizer,
    "SimpleImputer": _imputer,
    "MissingIndicator": _indicator,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "KBinsDiscretizer": _bins,
    "PolynomialFeatures": _polynomial,
    "PowerTransformer": _power,
    "PCA": _projection,
    "IncrementalPCA": _projection,
    "TruncatedSVD": _projection,
    "FastICA": _projection,
    "FunctionTransformer": _function,
}
_SEVERAL = ("Pipeline", "ColumnTransformer", "FeatureUnion")
