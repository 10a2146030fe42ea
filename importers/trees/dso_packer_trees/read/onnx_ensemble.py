"""TreeEnsemble of ONNX-ML, opset 5: float32 or float64, sets, and one target for each leaf.

A branch is a node or, if nodes_trueleafs or nodes_falseleafs says so, a leaf. Each node of the mode
MEMBER has the next part of membership_values, which NaN ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import ExportError

from ..forest import Forest, Kind, TreeLists
from ..pack import categories
from .onnx_trees import EQUAL, MEMBER, NOT_EQUAL, numeric_tests

_AVERAGE, _SUM = 0, 1
_DOUBLE = 11  # TensorProto.DataType


def read_ensemble(attributes: Mapping[str, Any], features: int, where: str) -> Forest:
    """Read the attributes of a node."""
    from onnx import numpy_helper

    aggregate = attributes.get("aggregate_function", _SUM)
    transform = attributes.get("post_transform", 0)
    # ONNX Runtime has other numbers for the transforms than ONNX.
    if transform != 0 or aggregate not in (_AVERAGE, _SUM):
        text = f"post_transform {transform}, aggregate_function {aggregate}, expected NONE (0)"
        raise ExportError(f"{where}: {text}, and AVERAGE (0) or SUM (1)")
    arrays: dict[str, NDArray[Any]] = {
        name: numpy_helper.to_array(value)
        if hasattr(value, "data_type")
        else np.asarray(value, np.int64)
        for name, value in attributes.items()
        if hasattr(value, "data_type") or isinstance(value, list)
    }
    outputs = int(attributes.get("n_targets", 1))
    targets = arrays["leaf_targetids"]
    if not 0 <= targets.min() <= targets.max() < outputs:
        raise ExportError(f"{where}: leaf_targetids, expected 0 to {outputs - 1}")
    values = np.zeros((len(targets), outputs))
    values[np.arange(len(targets)), targets] = arrays["leaf_weights"]
    trees = TreeLists(where)
    nodes = _tests(arrays, trees, where)
    for i, root in enumerate(arrays["tree_roots"].tolist()):
        _add_tree(trees, nodes, arrays, root, values, f"{where}: tree {i}")
    joined = trees.joined()
    count = len(joined.begins) - 1
    dtype = "float64" if attributes["leaf_weights"].data_type == _DOUBLE else "float32"
    return Forest(
        "onnx",
        joined,
        np.zeros(count, np.int64),
        features,
        np.zeros(outputs),
        dtype,
        dtype,
        divisor=float(count) if aggregate == _AVERAGE else 1.0,
        facts={"operator": "TreeEnsemble"},
    )


def _tests(arrays: Mapping[str, NDArray[Any]], trees: TreeLists, where: str) -> NDArray[Any]:
    """Return the tests of all nodes; `is_other` if the true branch is the right child."""
    modes, splits = arrays["nodes_modes"], arrays["nodes_splits"]
    if (modes > MEMBER).any():
        raise ExportError(f"{where}: nodes_modes, expected 0 to {MEMBER}")
    nodes = np.zeros(len(modes), [("threshold", "f8"), ("kind", "u1"), ("is_other", "?")])
    tracks = arrays.get("nodes_missing_value_tracks_true", np.zeros(len(modes), np.int64))
    nodes["threshold"], nodes["kind"], nodes["is_other"] = numeric_tests(modes, splits, tracks)
    members = arrays.get("membership_values", np.zeros(0))
    sets = iter(np.split(members, np.nonzero(np.isnan(members))[0] + 1))
    for node in np.nonzero(modes >= EQUAL)[0]:
        found = next(sets)[:-1] if modes[node] == MEMBER else splits[node : node + 1]
        is_tracked = tracks[node] and modes[node] != NOT_EQUAL
        if (found != np.floor(found)).any() or is_tracked:
            text = f"node {node}: a set {found.tolist()[:4]}, or its missing value"
            raise ExportError(f"{where}: {text}, expected integers without a missing value")
        nodes["threshold"][node], nodes["kind"][node] = len(trees.sets), Kind.EXACT_RIGHT
        trees.sets.append(np.sort(categories(found.astype(np.int64), where)))
    return nodes


def _add_tree(
    trees: TreeLists,
    tests: NDArray[Any],
    arrays: Mapping[str, NDArray[Any]],
    root: int,
    values: NDArray[np.float64],
    where: str,
) -> None:
    """Add the tree of a root; a leaf that several branches share is copied."""
    found: list[tuple[int, bool]] = [(root, False)]  # the nodes and leaves in the order of the tree
    children: list[tuple[int, int]] = []
    for index, is_leaf in found:
        if not 0 <= index < len(values if is_leaf else tests) or len(found) > 2 * len(tests) + 1:
            raise ExportError(f"{where}: node {index} out of range, or a node has two parents")
        children.append((-1, -1) if is_leaf else (len(found), len(found) + 1))
        if not is_leaf:
            for side in ("true", "false"):
                branch = int(arrays[f"nodes_{side}nodeids"][index])
                found.append((branch, bool(arrays[f"nodes_{side}leafs"][index])))
    places = np.array([index for index, _ in found])
    is_leaf_of = np.array([is_leaf for _, is_leaf in found])
    node = np.where(is_leaf_of, 0, places)
    one, (first, second) = tests[node], np.array(children).T
    trees.add(
        np.where(one["is_other"], second, first),
        np.where(one["is_other"], first, second),
        arrays["nodes_featureids"][node],
        np.where(is_leaf_of, 0.0, one["threshold"]),
        np.where(is_leaf_of, 0, one["kind"]),
        np.where(is_leaf_of[:, None], values[np.where(is_leaf_of, places, 0)], 0.0),
    )
