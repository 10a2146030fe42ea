"""Models of LightGBM: the text of `Booster.save_model`.

Lines ``key=value``: first of the model, then of each tree after a line ``Tree=<index>``. A child
below zero is the leaf ``-child - 1``. A decision_type has bit 0 for categories, bit 1 for a
missing value that goes left, and the missing type in bits 2 and 3 (tree.h).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import ExportError

from ..forest import Forest, Kind, Linear, Link, TreeLists
from ..pack import categories

_IDENTITY = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("lambdarank", "rank_xendcg", "custom", "none", "null", "na", ""),
)
_LINKS = {
    **dict.fromkeys(_IDENTITY, Link.IDENTITY),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), Link.EXP),
    **dict.fromkeys(("binary", "multiclassova", "cross_entropy"), Link.SIGMOID),
    "multiclass": Link.SOFTMAX,
    "cross_entropy_lambda": Link.LOG1P_EXP,
}
_NO_MISSING, _ZERO, _NAN = 0, 1, 2
_NEAR_ZERO = float(np.float32(1e-35))  # kZeroThreshold: LightGBM takes what is not farther as 0


def is_model(first: bytes) -> bool:
    """Return True if a file begins as a model does."""
    return first.lstrip().startswith(b"tree\n") or b"\nversion=v" in first[:64]


def from_object(model: Any, where: str) -> Forest:
    """Read a Booster, or a model of lightgbm.sklearn."""
    booster: Any = getattr(model, "_Booster", model)
    if not hasattr(booster, "model_to_string"):
        raise ExportError(f"{where}: expected a trained model of LightGBM")
    return from_bytes(booster.model_to_string().encode(), where)


def from_bytes(data: bytes, where: str) -> Forest:
    """Read the text of a model."""
    text = data.decode("utf-8", "replace")
    if "\nend of trees" not in text:
        raise ExportError(f"{where}: no line 'end of trees'; the file is cut, save the model again")
    head, *blocks = re.split(r"^Tree=\d+$", text.partition("\nend of trees")[0], flags=re.MULTILINE)
    facts = _facts(head)
    count = _number(facts, "max_feature_idx", where) + 1
    outputs = _number(facts, "num_tree_per_iteration", where)
    if outputs < 1 or len(blocks) % outputs:
        found = f"{len(blocks)} trees of {outputs} for each iteration"
        raise ExportError(f"{where}: {found}, expected all trees of each; save the model again")
    trees = TreeLists(where)
    is_linear = any("\nis_linear=1" in block for block in blocks)
    for i, block in enumerate(blocks):
        of_tree = _facts(block)
        values = _add_tree(trees, of_tree, f"{where}: tree {i}")
        if is_linear:
            trees.linear.append(_linear(of_tree, values, f"{where}: tree {i}"))
    name, link, parameter = _link(facts.get("objective", ""), where)
    return Forest(
        "lightgbm",
        trees.joined(),
        np.arange(len(blocks)) % outputs,
        count,
        np.zeros(outputs),
        "float64",
        "float64",
        link,
        parameter,
        len(blocks) // outputs if "average_output" in facts else 1.0,
        feature_names=facts.get("feature_names", "").split(),
        facts={"objective": name},
    )


def _facts(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.splitlines() if line)
    return {key: value for key, _, value in pairs}


def _number(facts: Mapping[str, str], key: str, where: str) -> int:
    value = facts.get(key, "")
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise ExportError(f"{where}: {key}, expected an integer, found {value[:40]!r}")
    return int(value)


def _array(
    facts: Mapping[str, str], key: str, dtype: Any, count: int, where: str
) -> NDArray[np.generic]:
    try:
        array = np.array(facts.get(key, "").split(), dtype)
    except (ValueError, OverflowError) as error:
        raise ExportError(f"{where}: {key}: {error}") from error
    if len(array) != count:
        raise ExportError(f"{where}: {key} has {len(array)} numbers, expected {count}")
    return array


def _linear(facts: Mapping[str, str], values: NDArray[np.float64], where: str) -> Linear:
    """Return the functions of a tree's leaves; without them, the values of the leaves."""
    leaves, empty = len(values), np.zeros(len(values) - 1)
    if facts.get("is_linear", "0").strip() == "0":
        zeros = np.zeros(2 * leaves - 1, np.int64)
        return Linear(np.concatenate([empty, values]), zeros, zeros[:0], empty[:0])
    counts = _array(facts, "num_features", np.int64, leaves, where).astype(np.int64)
    if counts.min() < 0:
        raise ExportError(f"{where}: num_features, expected at least 0, found {counts.min()}")
    total = int(counts.sum())
    return Linear(
        np.concatenate([empty, _array(facts, "leaf_const", np.float64, leaves, where)]),
        np.concatenate([empty, counts]).astype(np.int64),
        _array(facts, "leaf_features", np.int64, total, where).astype(np.int64),
        _array(facts, "leaf_coeff", np.float64, total, where).astype(np.float64),
    )


def _add_tree(trees: TreeLists, facts: Mapping[str, str], where: str) -> NDArray[np.float64]:
    """Add a tree: its nodes in order, then its leaves; return their values."""
    leaves = _number(facts, "num_leaves", where)
    if leaves < 1:
        raise ExportError(f"{where}: num_leaves, expected at least 1, found {leaves}")
    inner = leaves - 1
    values = _array(facts, "leaf_value", np.float64, leaves, where)
    numbers = {
        key: _array(facts, key, dtype, inner, where) if inner else np.zeros(0, dtype)
        for key, dtype in (
            *(("left_child", np.int64), ("right_child", np.int64), ("split_feature", np.int64)),
            *(("threshold", np.float64), ("decision_type", np.int64)),
        )
    }
    left, right = (numbers[key].astype(np.int64) for key in ("left_child", "right_child"))
    lowest = min(left.min(initial=0), right.min(initial=0))
    if lowest < -leaves:
        raise ExportError(f"{where}: leaf {-lowest - 1} out of range 0 to {leaves - 1}")
    none, zeros = np.full(leaves, -1), np.zeros(leaves)
    threshold = _without_near_zero(numbers["threshold"].astype(np.float64))
    decisions = numbers["decision_type"].astype(np.int64)
    kind = _kinds(decisions)
    if (is_category := decisions & 1 == 1).any():
        threshold[is_category] = _add_sets(trees, facts, numbers["threshold"][is_category], where)
    trees.add(
        np.concatenate([np.where(left < 0, inner - left - 1, left), none]),
        np.concatenate([np.where(right < 0, inner - right - 1, right), none]),
        np.concatenate([numbers["split_feature"].astype(np.int64), none]),
        np.concatenate([threshold, zeros]),
        np.concatenate([kind, zeros]).astype(np.uint8),
        np.concatenate([np.zeros(inner), values]),
        np.concatenate([np.zeros(inner, np.int64), np.arange(leaves)]),
    )
    return values.astype(np.float64)


def _without_near_zero(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move thresholds near 0 so that a value near 0 takes the side of 0."""
    is_near = np.abs(threshold) <= _NEAR_ZERO
    side = np.where(threshold < 0, np.nextafter(-_NEAR_ZERO, -1), _NEAR_ZERO)
    return np.where(is_near, side, threshold)


def _kinds(decisions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the kinds; where nothing is missing, NaN is 0."""
    missing, is_left = decisions >> 2 & 3, decisions & 2 != 0
    kind = np.where(is_left, Kind.NAN_LEFT, Kind.NAN_RIGHT)
    kind = np.where(missing == _NO_MISSING, Kind.NAN_ZERO, kind)
    zero = np.where(is_left, Kind.ZERO_LEFT, Kind.ZERO_RIGHT)
    return np.where(decisions & 1, Kind.TRUNCATED_RIGHT, np.where(missing == _ZERO, zero, kind))


def _add_sets(
    trees: TreeLists, facts: Mapping[str, str], numbers: NDArray[np.float64], where: str
) -> NDArray[np.float64]:
    """Add the sets of categories of a tree; return their indices for nodes."""
    count = _number(facts, "num_cat", where)
    bounds = _array(facts, "cat_boundaries", np.int64, count + 1, where).astype(np.int64)
    if (np.diff(bounds) < 0).any() or bounds[0] != 0:
        raise ExportError(f"{where}: cat_boundaries, expected ascending numbers")
    words = _array(facts, "cat_threshold", np.int64, int(bounds[-1]), where)
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    if not ((numbers >= 0) & (numbers < count)).all():
        raise ExportError(f"{where}: threshold of a category, expected 0 to {count - 1}")
    first = len(trees.sets)
    for i in range(count):
        found = np.nonzero(bits[bounds[i] * 32 : bounds[i + 1] * 32])[0]
        trees.sets.append(categories(found, where))
    return first + np.floor(numbers)


def _link(objective: str, where: str) -> tuple[str, Link, float]:
    name, *options = objective.split() or [""]
    if name not in _LINKS:
        raise ExportError(f"{where}: objective {name!r}, expected one of {', '.join(_LINKS)}")
    named = dict(option.partition(":")[::2] for option in options)
    if name == "regression" and "sqrt" in options:
        return name, Link.SIGNED_SQUARE, 1.0
    try:
        return name, _LINKS[name], float(named.get("sigmoid", 1.0))
    except ValueError as error:
        raise ExportError(f"{where}: objective: {error}") from error
