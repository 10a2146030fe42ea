"""The trees of ONNX-ML: TreeEnsembleRegressor and TreeEnsembleClassifier.

Attributes have an element for each node or each value of a leaf; a node's mode is its test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import ExportError

from ..forest import Forest, Kind, Link, TreeLists, Trees, below

NODES = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")
_LINKS = {"NONE": Link.IDENTITY, "LOGISTIC": Link.SIGMOID, "SOFTMAX": Link.SOFTMAX}
# The modes of opset 5, by their number; MEMBER is a set.
LESS_EQUAL, LESS, GREATER_EQUAL, GREATER, EQUAL, NOT_EQUAL, MEMBER = range(7)
_MODES = {
    b"BRANCH_LEQ": LESS_EQUAL,
    b"BRANCH_LT": LESS,
    b"BRANCH_GTE": GREATER_EQUAL,
    b"BRANCH_GT": GREATER,
}


def read_node(attributes: Mapping[str, Any], op: str, features: int, where: str) -> Forest:
    """Read the attributes of a node; numbers in tensors are float64."""
    from onnx import numpy_helper

    tensors = {
        name.removesuffix("_as_tensor"): numpy_helper.to_array(value).tolist()
        for name, value in attributes.items()
        if name.endswith("_as_tensor")
    }
    dtype = np.float64 if tensors else np.float32
    return _forest({**attributes, **tensors}, op, features, dtype, where)


def _forest(
    attributes: Mapping[str, Any], op: str, features: int, dtype: type[np.floating], where: str
) -> Forest:
    is_classifier = op == "TreeEnsembleClassifier"
    prefix = "class" if is_classifier else "target"
    transform = attributes.get("post_transform", b"NONE").decode()
    if transform not in _LINKS:
        raise ExportError(f"{where}: post_transform {transform}, expected one of {[*_LINKS]}")
    if attributes.get("aggregate_function", b"SUM") not in (b"SUM", b"AVERAGE"):
        raise ExportError(f"{where}: aggregate_function, expected SUM or AVERAGE")
    labels = attributes.get("classlabels_strings") or attributes.get("classlabels_int64s") or ()
    outputs = len(labels) if is_classifier else int(attributes.get("n_targets", 1))
    ids = np.asarray(attributes[f"{prefix}_ids"], np.int64)
    link = _LINKS[transform]
    base = np.asarray(attributes.get("base_values") or (), np.float64)
    if is_classifier and outputs == 2 and not ids.any():
        outputs, link = 1, _link_of_one(attributes, link, where)
    elif is_classifier and outputs == 2 and len(base):
        raise ExportError(f"{where}: base_values of two classes, expected none")
    elif outputs == 1 and link is not Link.IDENTITY:  # ONNX Runtime leaves it out
        raise ExportError(f"{where}: post_transform {transform} of one target, expected NONE")
    _check_values(attributes, prefix, ids, outputs, where)
    if not 0 < outputs <= len(ids) or not (0 <= ids.min() <= ids.max() < outputs):
        raise ExportError(f"{where}: {prefix}_ids, expected 0 to {outputs - 1}")
    if len(base) not in (0, outputs):
        raise ExportError(f"{where}: {len(base)} base_values, expected {outputs} or none")
    trees = _trees(attributes, _values(attributes, prefix, ids, outputs, dtype), dtype, where)
    count = len(trees.begins) - 1
    is_average = attributes.get("aggregate_function") == b"AVERAGE"
    return Forest(
        "onnx",
        trees,
        np.zeros(count, np.int64),
        features,
        base if len(base) else np.zeros(outputs),
        dtype.__name__,
        dtype.__name__,
        link,
        divisor=float(count) if is_average else 1.0,
        is_base_last=True,
        classes=[label.decode() if isinstance(label, bytes) else str(label) for label in labels],
        facts={"operator": op},
    )


def _check_values(
    attributes: Mapping[str, Any], prefix: str, ids: NDArray[np.int64], outputs: int, where: str
) -> None:
    """Refuse outputs that a row may have no value of, where ONNX Runtime then has other scores."""
    is_base = prefix == "target" and bool(attributes.get("base_values"))
    needed = {*range(outputs)} if is_base else {1} if prefix == "class" else set()
    if outputs == 1 or (prefix == "class" and outputs > 2):
        return
    modes = zip(attributes["nodes_treeids"], attributes["nodes_modes"], strict=True)
    leaves = Counter(tree for tree, mode in modes if mode == b"LEAF")
    places = (attributes[f"{prefix}_{name}"] for name in ("treeids", "nodeids"))
    of_trees = Counter((tree, id) for tree, _, id in {*zip(*places, ids.tolist(), strict=True)})
    always = {id for (tree, id), count in of_trees.items() if count == leaves[tree]}
    if needed - always:
        text = f"a value for {min(needed - always)} in each leaf of a tree, expected one"
        raise ExportError(f"{where}: {prefix}_ids: {text}")


def _link_of_one(attributes: Mapping[str, Any], link: Link, where: str) -> Link:
    """Return the link of two classes of which the leaves score one, as ONNX Runtime has it."""
    if link is Link.SIGMOID:
        return Link.TWO_CLASSES
    if min(attributes["class_weights"]) < 0:
        text = "two classes, of which the leaves score one below 0, expected LOGISTIC"
        raise ExportError(f"{where}: post_transform: {text}")
    return Link.COMPLEMENT


def _trees(
    attributes: Mapping[str, Any],
    values: Mapping[tuple[int, int], NDArray[np.float64]],
    dtype: type[np.floating],
    where: str,
) -> Trees:
    """Return the trees; a leaf without a value adds 0."""
    none = np.zeros_like(next(iter(values.values())))
    names = ("treeids", "nodeids", "truenodeids", "falsenodeids", "featureids")
    columns = (np.asarray(attributes[f"nodes_{name}"], np.int64) for name in names)
    tree_ids, node_ids, true, false, feature = columns
    modes = attributes["nodes_modes"]
    if unknown := {*modes} - {*_MODES, b"LEAF"}:
        known = ", ".join(mode.decode() for mode in _MODES)
        raise ExportError(f"{where}: mode {min(unknown).decode()}, expected one of {known}")
    tracks = attributes.get("nodes_missing_value_tracks_true") or [0] * len(modes)
    splits = np.asarray(attributes["nodes_values"], dtype)
    numbers = np.array([_MODES.get(mode, LESS_EQUAL) for mode in modes])
    threshold, kind, is_other = numeric_tests(numbers, splits, np.asarray(tracks))
    is_leaf = np.array([mode == b"LEAF" for mode in modes])
    left = np.where(is_leaf, -1, np.where(is_other, false, true))
    right = np.where(is_leaf, -1, np.where(is_other, true, false))
    trees = TreeLists(where)
    for tree in dict.fromkeys(tree_ids.tolist()):
        at = np.nonzero(tree_ids == tree)[0]
        at = at[np.argsort(node_ids[at], kind="stable")]
        if (node_ids[at] != np.arange(len(at))).any():
            raise ExportError(f"{where}: tree {tree}: nodes_nodeids, expected 0 to {len(at) - 1}")
        leaves = np.stack([values.get((tree, i), none) for i in range(len(at))])
        trees.add(left[at], right[at], feature[at], threshold[at], kind[at], leaves)
    return trees.joined()


def numeric_tests(
    modes: NDArray[np.integer], splits: NDArray[np.floating], tracks: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the thresholds and kinds; and if the right child is the one of a true test.

    A missing value goes where the test is true if it is marked in `tracks`, else where it is false.
    """
    is_other = np.isin(modes, (GREATER, GREATER_EQUAL, NOT_EQUAL))
    is_less = np.isin(modes, (LESS, GREATER_EQUAL))
    kind = np.where((tracks != 0) != is_other, Kind.NAN_LEFT, Kind.NAN_RIGHT).astype(np.uint8)
    return np.where(is_less, below(splits), splits).astype(np.float64), kind, is_other


def _values(
    attributes: Mapping[str, Any],
    prefix: str,
    ids: NDArray[np.int64],
    outputs: int,
    dtype: type[np.floating],
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Return the values of leaves by tree and node."""
    found: dict[tuple[int, int], NDArray[np.float64]] = {}
    names = (f"{prefix}_treeids", f"{prefix}_nodeids", f"{prefix}_weights")
    columns = (attributes[name] for name in names)
    for tree, node, weight, output in zip(*columns, ids.tolist(), strict=True):
        found.setdefault((tree, node), np.zeros(outputs))[output] += dtype(weight)
    return found
