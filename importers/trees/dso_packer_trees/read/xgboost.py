"""Models of XGBoost: JSON or UBJSON of `Booster.save_model`, whose objects have equal keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import ExportError

from ..forest import Forest, Kind, Link, TreeLists, below
from ..pack import categories
from .expecting import expecting
from .ubjson import read_ubjson

_IDENTITY = (
    *("reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror"),
    *("reg:absoluteerror", "reg:quantileerror", "reg:expectileerror", "binary:logitraw"),
    *("rank:pairwise", "rank:ndcg", "rank:map"),
)
_EXP = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_LINKS = {
    **dict.fromkeys(_IDENTITY, Link.IDENTITY),
    **dict.fromkeys(_EXP, Link.EXP),
    **dict.fromkeys(("binary:logistic", "reg:logistic"), Link.SIGMOID),
    "binary:hinge": Link.STEP,
    "multi:softprob": Link.SOFTMAX,
    "multi:softmax": Link.CLASS,
}
_MOST_OUTPUTS = 1 << 16


def is_model(first: bytes) -> bool:
    """Return True if a file begins as a model does."""
    return first.startswith(b"{") and b"learner" in first


def from_object(model: Any, where: str) -> Forest:
    """Read a Booster, or a model of xgboost.sklearn up to its best iteration."""
    booster, missing = model, getattr(model, "missing", None)
    if missing is not None and missing == missing:
        text = f"missing={missing!r}, expected NaN; replace the values by NaN and train again"
        raise ExportError(f"{where}: {text}")
    if hasattr(model, "get_booster"):
        try:
            booster = model.get_booster()
        except Exception as error:
            raise ExportError(f"{where}: {error}") from error
        best = booster.attributes().get("best_iteration")
        booster = booster if best is None else booster[: int(best) + 1]
    if not hasattr(booster, "save_raw"):
        raise ExportError(f"{where}: expected a trained model of XGBoost")
    return from_bytes(bytes(booster.save_raw("ubj")), where)


def from_bytes(data: bytes, where: str) -> Forest:
    """Read the bytes of a model file."""
    with expecting(where, "the keys of XGBoost 2 or newer"):
        is_binary = data[1:2] in (b"L", b"i", b"U", b"I", b"l")
        document = read_ubjson(data, where) if is_binary else json.loads(data)
        return _forest(document["learner"], where)


def _forest(learner: Mapping[str, Any], where: str) -> Forest:
    params, booster = learner["learner_model_param"], learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        text = f"booster {booster['name']!r}, expected 'gbtree' or 'dart'"
        raise ExportError(f"{where}: {text}; train with one of them")
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    weights = booster.get("weight_drop", [1.0] * len(model["trees"]))
    outputs = max(int(params["num_class"]), int(params.get("num_target", 1)), 1)
    if outputs > _MOST_OUTPUTS:
        raise ExportError(f"{where}: {outputs} outputs, expected at most {_MOST_OUTPUTS}")
    objective = str(learner["objective"]["name"])
    if objective not in _LINKS:
        raise ExportError(f"{where}: objective {objective!r}, expected one of {', '.join(_LINKS)}")
    trees = TreeLists(where)
    for i, (tree, weight) in enumerate(zip(model["trees"], weights, strict=True)):
        _add_tree(trees, tree, np.float32(weight), f"{where}: tree {i}")
    joined = trees.joined()
    is_vector = joined.value.shape[1] > 1
    targets = np.zeros(len(weights)) if is_vector else np.asarray(model["tree_info"])
    return Forest(
        "xgboost",
        joined,
        targets.astype(np.int64),
        int(params["num_feature"]),
        _base(params["base_score"], outputs, _LINKS[objective], where),
        "float32",
        "float32",
        _LINKS[objective],
        feature_names=[str(name) for name in learner.get("feature_names", [])],
        facts={"objective": objective},
    )


def _base(text: Any, outputs: int, link: Link, where: str) -> NDArray[np.float64]:
    """Return the margins that sums begin with: the file has scores."""
    parts = str(text).strip("[]").split(",")
    scores = np.array([float(part) for part in parts], np.float32)
    if len(scores) not in (1, outputs) or not np.isfinite(scores).all():
        raise ExportError(f"{where}: base_score {text!r}, expected {outputs} numbers")
    one = np.float32(1)
    with np.errstate(all="ignore"):
        if link is Link.SIGMOID:
            scores = -np.log(one / scores - one)
        elif link is Link.EXP:
            scores = np.log(scores)
    return np.broadcast_to(scores.astype(np.float64), outputs).copy()


def _array(tree: Mapping[str, Any], key: str, dtype: Any) -> NDArray[Any]:
    return np.asarray(tree[key]).astype(dtype)


def _add_tree(trees: TreeLists, tree: Mapping[str, Any], weight: np.float32, where: str) -> None:
    left, right = _array(tree, "left_children", np.int64), _array(tree, "right_children", np.int64)
    condition = _array(tree, "split_conditions", np.float32)
    is_left = _array(tree, "default_left", bool)
    kind = np.where(is_left, Kind.NAN_LEFT, Kind.NAN_RIGHT)
    threshold = below(condition)
    width = int(tree["tree_param"].get("size_leaf_vector", 1))
    value = condition if width <= 1 else _vectors(tree, width, left)
    is_category = _array(tree, "split_type", np.int64) == 1 if "split_type" in tree else None
    if is_category is not None and is_category.any():
        for node, found in _sets(tree).items():
            threshold[node] = len(trees.sets)
            trees.sets.append(categories(found, where))
        # The right child follows for a category of the set.
        left, right = np.where(is_category, right, left), np.where(is_category, left, right)
        of_category = np.where(is_left, Kind.CATEGORY_RIGHT, Kind.CATEGORY_LEFT)
        kind = np.where(is_category, of_category, kind)
    trees.add(
        *(left, right, _array(tree, "split_indices", np.int64), threshold),
        *(kind.astype(np.uint8), (value * weight).astype(np.float64)),
    )


def _sets(tree: Mapping[str, Any]) -> dict[int, NDArray[np.int64]]:
    values = _array(tree, "categories", np.int64)
    keys = ("categories_nodes", "categories_segments", "categories_sizes")
    rows: Sequence[Any] = list(zip(*(_array(tree, key, np.int64) for key in keys), strict=True))
    return {int(node): values[begin : begin + size] for node, begin, size in rows}


def _vectors(tree: Mapping[str, Any], width: int, left: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the values of leaves with several: of nodes in `base_weights`, or of leaves."""
    values = _array(tree, "leaf_weights" if "leaf_weights" in tree else "base_weights", np.float32)
    rows = values.reshape(-1, width)
    if len(rows) == len(left):
        return rows
    made = np.zeros((len(left), width), np.float32)
    is_leaf = left < 0
    made[is_leaf] = rows[: int(is_leaf.sum())]
    return made
