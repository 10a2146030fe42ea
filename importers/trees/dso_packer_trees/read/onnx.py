"""Models of ONNX-ML with one node of trees: TreeEnsembleRegressor and TreeEnsembleClassifier.

Nodes after it that do not change scores are dropped, ZipMap among them, and so is the
label. Attributes have an element for each node or each value of a leaf; a node's mode is its test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import ExportError

from ..forest import Forest, Kind, Link, TreeLists, below
from .expecting import expecting

_NODES = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")
_DROPPED = ("ZipMap", "Cast", "Identity")
_LINKS = {"NONE": Link.IDENTITY, "LOGISTIC": Link.SIGMOID, "SOFTMAX": Link.SOFTMAX}
# The test of a mode: whether the children are exchanged, and whether it is x < value.
_MODES = {
    "BRANCH_LEQ": (False, False),
    "BRANCH_LT": (False, True),
    "BRANCH_GT": (True, False),
    "BRANCH_GTE": (True, True),
}


def is_model(first: bytes) -> bool:
    """Return True if a file begins with the names of the operators, or with a version of ONNX."""
    return first[:1] == b"\x08" or any(name.encode() in first for name in _NODES)


def from_object(model: Any, where: str) -> Forest:
    """Read a ModelProto."""
    from onnx import helper

    graph = model.graph
    found = [node for node in graph.node if node.op_type in _NODES]
    others = [n.op_type for n in graph.node if n.op_type not in (*_NODES, *_DROPPED)]
    if len(found) != 1 or others or found[0].input[0] != graph.input[0].name:
        text = ", ".join([*(node.op_type for node in found), *others]) or "no nodes"
        raise ExportError(f"{where}: {text}, expected one of {', '.join(_NODES)} over the input")
    attributes = {a.name: helper.get_attribute_value(a) for a in found[0].attribute}
    unread = [name for name in attributes if name.endswith("_as_tensor")]
    if unread:
        raise ExportError(f"{where}: {unread[0]}, expected attributes of float32")
    with expecting(where, "the attributes of ONNX"):
        return _forest(attributes, found[0].op_type, _width(graph, attributes), where)


def from_bytes(data: bytes, where: str) -> Forest:
    """Read the bytes of a model file."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return from_object(onnx.load_model_from_string(data), where)
    except DecodeError as error:
        raise ExportError(f"{where}: {error}, expected an ONNX model") from error


def _width(graph: Any, attributes: Mapping[str, Any]) -> int:
    """Return the number of features: of the input, or else of the nodes."""
    shape = graph.input[0].type.tensor_type.shape.dim
    known = int(shape[-1].dim_value) if len(shape) else 0
    return known or int(max(attributes["nodes_featureids"], default=0)) + 1


def _forest(attributes: Mapping[str, Any], op: str, features: int, where: str) -> Forest:
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
    if is_classifier and outputs == 2 and len({*ids.tolist()}) == 1:
        outputs, link, ids = 1, _link_of_one(attributes, link, where), np.zeros_like(ids)
    if not 0 < outputs <= len(ids) or not (0 <= ids.min() <= ids.max() < outputs):
        raise ExportError(f"{where}: {prefix}_ids, expected 0 to {outputs - 1}")
    trees = _trees(attributes, prefix, ids, outputs, where)
    count = len(trees.begins) - 1
    is_average = attributes.get("aggregate_function") == b"AVERAGE"
    return Forest(
        "onnx",
        trees,
        np.zeros(count, np.int64),
        features,
        np.resize(np.asarray(attributes.get("base_values") or [0.0], np.float64), outputs),
        "float32",
        "float32",
        link,
        divisor=float(count) if is_average else 1.0,
        is_base_last=True,
        classes=[label.decode() if isinstance(label, bytes) else str(label) for label in labels],
        facts={"operator": op},
    )


def _link_of_one(attributes: Mapping[str, Any], link: Link, where: str) -> Link:
    """Return the link of two classes of which the leaves score one, as ONNX Runtime has it."""
    if min(attributes["class_weights"]) >= 0:
        return Link.COMPLEMENT
    if link is not Link.SIGMOID:
        text = "two classes, of which the leaves score one below 0, expected LOGISTIC"
        raise ExportError(f"{where}: post_transform: {text}")
    return Link.TWO_CLASSES


def _trees(
    attributes: Mapping[str, Any],
    prefix: str,
    ids: NDArray[np.int64],
    outputs: int,
    where: str,
) -> Any:
    """Return the trees; a leaf has a value for each output."""
    tree_ids = np.asarray(attributes["nodes_treeids"], np.int64)
    node_ids = np.asarray(attributes["nodes_nodeids"], np.int64)
    columns: dict[str, NDArray[Any]] = {
        key: np.asarray(attributes[f"nodes_{name}"], dtype)
        for key, name, dtype in (
            *(("left", "truenodeids", np.int64), ("right", "falsenodeids", np.int64)),
            *(("feature", "featureids", np.int64), ("threshold", "values", np.float32)),
        )
    }
    missing = np.asarray(
        attributes.get("nodes_missing_value_tracks_true") or [0] * len(tree_ids), np.int64
    )
    values = _values(attributes, prefix, ids, outputs)
    modes = [mode.decode() for mode in attributes["nodes_modes"]]
    trees = TreeLists(where)
    for tree in dict.fromkeys(tree_ids.tolist()):
        at = np.nonzero(tree_ids == tree)[0]
        at = at[np.argsort(node_ids[at], kind="stable")]
        if (node_ids[at] != np.arange(len(at))).any():
            raise ExportError(f"{where}: tree {tree}: nodes_nodeids, expected 0 to {len(at) - 1}")
        one = {key: column[at] for key, column in columns.items()}
        tests = [modes[i] for i in at.tolist()]
        if unknown := {*tests} - {*_MODES, "LEAF"}:
            text = f"mode {min(unknown)}, expected one of {', '.join(_MODES)}"
            raise ExportError(f"{where}: tree {tree}: {text}")
        is_leaf = np.array([test == "LEAF" for test in tests])
        is_other = np.array([_MODES.get(test, (False, False))[0] for test in tests])
        is_less = np.array([_MODES.get(test, (False, False))[1] for test in tests])
        left, right = (np.where(is_leaf, -1, one[key]) for key in ("left", "right"))
        # A missing value goes where the test is true if it is marked, else where it is false.
        is_left = (missing[at] != 0) != is_other
        trees.add(
            np.where(is_other, right, left),
            np.where(is_other, left, right),
            one["feature"],
            np.where(is_less, below(one["threshold"]), one["threshold"]).astype(np.float64),
            np.where(is_left, Kind.NAN_LEFT, Kind.NAN_RIGHT).astype(np.uint8),
            np.stack([values.get((tree, i), np.zeros(outputs)) for i in range(len(at))]),
        )
    return trees.joined()


def _values(
    attributes: Mapping[str, Any], prefix: str, ids: NDArray[np.int64], outputs: int
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Return the values of leaves by tree and node."""
    found: dict[tuple[int, int], NDArray[np.float64]] = {}
    names = (f"{prefix}_treeids", f"{prefix}_nodeids", f"{prefix}_weights")
    columns = (attributes[name] for name in names)
    for tree, node, weight, output in zip(*columns, ids.tolist(), strict=True):
        found.setdefault((tree, node), np.zeros(outputs))[output] += np.float32(weight)
    return found
