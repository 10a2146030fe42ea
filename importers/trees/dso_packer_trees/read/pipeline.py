"""Pipelines and other models of scikit-learn than forests: steps, and at most one forest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from packer import ExportError

from ..forest import Forest
from ..steps import Op, Steps
from .expecting import expecting
from .scorers import is_score, score
from .sklearn import is_forest
from .transformers import is_sparse, is_transformer, transform

Part = Forest | Steps


def is_pipeline(model: Any) -> bool:
    """Return True for a model of scikit-learn, unless it is a forest."""
    return type(model).__module__.startswith("sklearn.") and not is_forest(model)


def from_object(model: Any, where: str, read: Callable[[Any, str], list[Part]]) -> list[Part]:
    """Return the parts of a fitted model; `read` reads the last model of a pipeline."""
    before, last = _divided(model)
    name = type(last).__name__
    if is_pipeline(last) and not (is_score(last) or is_transformer(last)):
        text = "expected a forest, linear model, SVM or transformer that trees.md of its docs lists"
        raise ExportError(f"{where}: {name} is not supported, {text}")
    first = before[0][1] if before else last
    if not hasattr(first, "n_features_in_"):
        raise ExportError(f"{where}: is not fitted; call fit first")
    steps = Steps("scikit-learn", int(first.n_features_in_))
    steps.feature_names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    steps.classes = [str(name) for name in getattr(last, "classes_", ())]
    has_steps, is_without_zeros = is_pipeline(last), False
    with expecting(where, "the attributes of scikit-learn 1.3 or newer"):
        for name, one in before:
            steps.out = transform(one, steps, steps.out, f"{where}: {name}")
            is_without_zeros = is_sparse(one, is_without_zeros)
        if has_steps:
            add = score if is_score(last) else transform
            steps.out = add(last, steps, steps.out, where)
    if has_steps:
        return [steps]
    parts = read(last, where)
    if type(last).__module__.startswith("xgboost.") and is_without_zeros:
        # XGBoost takes what a sparse matrix leaves out as missing.
        is_zero = steps.each(Op.EQUAL, steps.out, 0.0)
        steps.out = steps.each(Op.WHERE, is_zero, np.nan, steps.out)
    if parts[0].num_features != steps.out.width:
        text = f"{steps.out.width} columns before the last model, expected"
        raise ExportError(f"{where}: {text} {parts[0].num_features}; fit the whole pipeline")
    return parts if steps.out == steps.row else [steps, *parts]


def _divided(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Return the transformers of a pipeline with their names, and its last model."""
    if type(model).__name__ != "Pipeline":
        return [], model
    pairs = [(name, one) for name, one in model.steps if one not in (None, "passthrough")]
    if not pairs:
        raise ExportError("Pipeline: no steps but 'passthrough', expected at least one")
    *before, (_, last) = pairs
    inner, last = _divided(last)
    return [*before, *inner], last
