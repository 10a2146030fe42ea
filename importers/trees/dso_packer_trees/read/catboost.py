"""Models of CatBoost: the JSON of `save_model(format="json")`, of oblivious trees.

All nodes of a level have the same split, ``x > border``; the bit of split i in the number of a leaf
is i. Models of categories or texts are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from packer import ExportError

from ..forest import Forest, Kind, Link, TreeLists
from .expecting import expecting

_LINKS = {
    **dict.fromkeys(("Logloss", "CrossEntropy"), Link.TWO_CLASSES),
    **dict.fromkeys(("Poisson", "Tweedie"), Link.EXP),
    "MultiClass": Link.SOFTMAX,
    "MultiClassOneVsAll": Link.SIGMOID,
}
_MISSING = {"AsIs": Kind.NAN_LEFT, "AsFalse": Kind.NAN_LEFT, "AsTrue": Kind.NAN_RIGHT}
_MOST_DEPTH = 16


def is_model(first: bytes) -> bool:
    """Return True if a file begins as a model does."""
    return first.startswith(b"{") and (b"features_info" in first or b"oblivious_trees" in first)


def from_object(model: Any, where: str) -> Forest:
    """Read a trained model."""
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        try:
            model.save_model(path, format="json")
        except Exception as error:  # CatBoostError is of a package that may be missing
            raise ExportError(f"{where}: {error}") from error
        with open(path, "rb") as file:
            return from_bytes(file.read(), where)


def from_bytes(data: bytes, where: str) -> Forest:
    """Read the bytes of a model file."""
    with expecting(where, "the keys of CatBoost"):
        return _forest(json.loads(data), where)


def _forest(document: Mapping[str, Any], where: str) -> Forest:
    info = document["features_info"]
    others = [key for key in info if key != "float_features" and info[key]]
    if others or "oblivious_trees" not in document:
        found = ", ".join(others) or "trees that are not oblivious"
        raise ExportError(f"{where}: {found}, expected oblivious trees of float features")
    features: Sequence[Mapping[str, Any]] = info["float_features"]
    kinds = [_MISSING[feature["nan_value_treatment"]] for feature in features]
    flat = [int(feature["flat_feature_index"]) for feature in features]
    scale, bias = document.get("scale_and_bias", [1, [0]])
    if scale != 1:
        raise ExportError(f"{where}: a scale of {scale}, expected 1; call set_scale_and_bias")
    forest = document["oblivious_trees"]
    depth = len(forest[0].get("splits") or [])
    outputs = max(len(forest[0]["leaf_values"]) >> depth, 1)
    base = np.resize(np.asarray(bias, np.float64).reshape(-1), outputs)
    trees = TreeLists(where)
    for i, tree in enumerate(forest):
        _add_tree(trees, tree, flat, kinds, len(base), f"{where}: tree {i}")
    params = document["model_info"].get("params", {})
    params = json.loads(params) if isinstance(params, str) else params
    loss = params.get("loss_function", {}).get("type", "RMSE")
    names = [str(feature.get("feature_id", "")) for feature in features]
    return Forest(
        "catboost",
        trees.joined(),
        np.zeros(len(forest), np.int64),
        max(flat) + 1,
        base,
        "float32",
        "float64",
        _LINKS.get(str(loss), Link.IDENTITY),
        is_base_last=True,
        feature_names=names if any(names) else [],
        facts={"objective": str(loss)},
    )


def _add_tree(
    trees: TreeLists,
    tree: Mapping[str, Any],
    flat: Sequence[int],
    kinds: Sequence[Kind],
    width: int,
    where: str,
) -> None:
    """Add a tree: level by level, the last split at the root."""
    splits = tree.get("splits") or []
    depth = len(splits)
    if depth > _MOST_DEPTH:
        raise ExportError(f"{where}: depth {depth}, expected at most {_MOST_DEPTH}")
    inner, leaves = (1 << depth) - 1, 1 << depth
    values = np.asarray(tree["leaf_values"], np.float64).reshape(-1, width)
    if len(values) != leaves:
        raise ExportError(f"{where}: {len(values)} leaves, expected {leaves}")
    number = np.arange(inner + leaves)
    is_leaf = number >= inner
    level = np.floor(np.log2(number + 1)).astype(np.int64)
    chosen = [int(split["float_feature_index"]) for split in splits]
    if not all(0 <= index < len(flat) for index in chosen):
        raise ExportError(f"{where}: float_feature_index, expected 0 to {len(flat) - 1}")
    # Of the levels from the root; a leaf has none.
    borders = np.array([*(split["border"] for split in reversed(splits)), 0], np.float32)
    feature = np.array([*(flat[index] for index in reversed(chosen)), 0])
    kind = np.array([*(kinds[index] for index in reversed(chosen)), 0])
    trees.add(
        np.where(is_leaf, -1, 2 * number + 1),
        np.where(is_leaf, -1, 2 * number + 2),
        feature[level],
        borders.astype(np.float64)[level],
        kind.astype(np.uint8)[level],
        np.concatenate([np.zeros((inner, width)), values]),
        np.concatenate([np.zeros(inner, np.int64), np.arange(leaves)]),
    )
