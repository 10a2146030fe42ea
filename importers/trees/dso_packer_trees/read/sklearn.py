"""Models of scikit-learn, from the objects: trees, forests, gradient boosting, isolation forests.

A classifier's scores are the results of `predict_proba`, an isolation forest's of
`decision_function`, and all others' of `predict`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import ExportError

from ..forest import Forest, Kind, Link, TreeLists, rounded_down
from .expecting import expecting

_Value = Callable[[Any], NDArray[np.float64]]


def from_object(model: Any, where: str) -> Forest:
    """Read a fitted model."""
    names = [cls.__name__ for cls in type(model).__mro__]
    for name, read in _READERS.items():
        if name in names:
            if not hasattr(model, "n_features_in_"):
                raise ExportError(f"{where}: is not fitted; call fit first")
            with expecting(where, "the attributes of scikit-learn 1.3 or newer"):
                return read(model, where)._replace(
                    feature_names=[str(name) for name in getattr(model, "feature_names_in_", ())],
                    classes=[str(name) for name in getattr(model, "classes_", ())],
                )
    raise ExportError(f"{where}: not a forest, expected {', '.join(_READERS)}")


def is_forest(model: Any) -> bool:
    """Return True if the class of a model, or a base of it, is one of scikit-learn's forests."""
    return any(cls.__name__ in _READERS for cls in type(model).__mro__)


def _tree(model: Any, where: str) -> Forest:
    return _averaged([model], model, where)


def _forest(model: Any, where: str) -> Forest:
    return _averaged(list(model.estimators_), model, where)


def _averaged(estimators: list[Any], model: Any, where: str) -> Forest:
    """Return a forest of the mean of trees: probabilities of classes, or values of outputs."""
    is_classifier = hasattr(model, "classes_")
    if is_classifier and model.n_outputs_ != 1:
        text = f"a classifier of {model.n_outputs_} outputs, expected 1; export one for each"
        raise ExportError(f"{where}: {text}")

    def values(tree: Any) -> NDArray[np.float64]:
        found: NDArray[np.float64] = tree.value
        return found[:, 0, : model.n_classes_] if is_classifier else found[:, :, 0]

    trees = TreeLists(where)
    for estimator in estimators:
        _add_tree(trees, estimator.tree_, values(estimator.tree_))
    joined = trees.joined()
    return _made(model, trees, np.zeros(joined.value.shape[1]), divisor=float(len(estimators)))


def _boosting(model: Any, where: str) -> Forest:
    """Read gradient boosting; its first guess may not depend on the row."""
    init = model.init_
    if init != "zero" and type(init).__name__ not in ("DummyClassifier", "DummyRegressor"):
        text = f"init={init!r} depends on the row, expected the default or 'zero'"
        raise ExportError(f"{where}: {text}; fit without init")
    trees, outputs = TreeLists(where), model.estimators_.shape[1]
    for tree in (estimator.tree_ for stage in model.estimators_ for estimator in stage):
        _add_tree(trees, tree, tree.value[:, 0, :1] * model.learning_rate)
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    targets = np.tile(np.arange(outputs), len(model.estimators_))
    made = _made(model, trees, np.asarray(base, np.float64), targets=targets)
    if not hasattr(model, "classes_"):
        return made
    scale = 2.0 if model.loss == "exponential" else 1.0
    link = Link.TWO_CLASSES if outputs == 1 else Link.SOFTMAX
    return made._replace(link=link, parameter=scale)


def _histogram(model: Any, where: str) -> Forest:
    if getattr(model, "is_categorical_", None) is not None and any(model.is_categorical_):
        text = "categorical features are not supported; encode them before"
        raise ExportError(f"{where}: {text}")
    trees, stages = TreeLists(where), model._predictors
    for nodes in (predictor.nodes for stage in stages for predictor in stage):
        is_leaf = nodes["is_leaf"].astype(bool)
        left, right = (
            np.where(is_leaf, -1, nodes[key].astype(np.int64)) for key in ("left", "right")
        )
        kind = np.where(nodes["missing_go_to_left"], Kind.NAN_LEFT, Kind.NAN_RIGHT)
        feature = nodes["feature_idx"].astype(np.int64)
        trees.add(left, right, feature, nodes["num_threshold"], kind, nodes["value"])
    base = np.asarray(model._baseline_prediction, np.float64).reshape(-1)
    targets = np.tile(np.arange(len(base)), len(stages))
    made = _made(model, trees, base, targets=targets)._replace(row_dtype="float64")
    if hasattr(model, "classes_"):
        return made._replace(link=Link.TWO_CLASSES if len(base) == 1 else Link.SOFTMAX)
    link = Link.EXP if model.loss in ("poisson", "gamma") else Link.IDENTITY
    return made._replace(link=link)


def _isolation(model: Any, where: str) -> Forest:
    """Read an isolation forest: leaves have the lengths of their paths."""
    from sklearn.ensemble._iforest import _average_path_length

    trees = TreeLists(where)
    for estimator, features, lengths, average in zip(
        model.estimators_,
        model.estimators_features_,
        model._decision_path_lengths,
        model._average_path_length_per_tree,
        strict=True,
    ):
        _add_tree(trees, estimator.tree_, lengths + average - 1.0, np.asarray(features))
    average_of_all = _average_path_length(np.array([model._max_samples]))[0]
    made = _made(model, trees, np.zeros(1), divisor=float(len(model.estimators_) * average_of_all))
    return made._replace(link=Link.ISOLATION, parameter=float(-model.offset_))


def _made(
    model: Any,
    trees: TreeLists,
    base: NDArray[np.float64],
    *,
    targets: NDArray[np.int64] | None = None,
    divisor: float = 1.0,
) -> Forest:
    joined = trees.joined()
    zeros = np.zeros(len(joined.begins) - 1, np.int64)
    return Forest(
        "scikit-learn",
        joined,
        zeros if targets is None else targets,
        int(model.n_features_in_),
        base,
        "float32",
        "float64",
        divisor=divisor,
    )


def _add_tree(
    trees: TreeLists,
    tree: Any,
    value: NDArray[np.float64],
    features: NDArray[np.int64] | None = None,
) -> None:
    """Add a tree of `sklearn.tree`; `features` are the columns of its features."""
    is_leaf = tree.children_left < 0
    feature = np.where(is_leaf, 0, tree.feature)
    missing = getattr(tree, "missing_go_to_left", np.zeros(len(is_leaf), bool))
    kind = np.where(missing, Kind.NAN_LEFT, Kind.NAN_RIGHT).astype(np.uint8)
    trees.add(
        tree.children_left,
        tree.children_right,
        feature if features is None else features[feature],
        rounded_down(tree.threshold),
        kind,
        np.ascontiguousarray(value),
    )


_READERS: dict[str, Callable[[Any, str], Forest]] = {
    "IsolationForest": _isolation,
    "HistGradientBoostingClassifier": _histogram,
    "HistGradientBoostingRegressor": _histogram,
    "GradientBoostingClassifier": _boosting,
    "GradientBoostingRegressor": _boosting,
    "RandomForestClassifier": _forest,
    "RandomForestRegressor": _forest,
    "ExtraTreesClassifier": _forest,
    "ExtraTreesRegressor": _forest,
    "DecisionTreeClassifier": _tree,
    "DecisionTreeRegressor": _tree,
}
