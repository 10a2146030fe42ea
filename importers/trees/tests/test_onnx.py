"""Single operators of ONNX and ONNX-ML: the scores of ONNX Runtime, or a refusal by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

from .models import Array

_NAN = np.array([[np.nan, 1, -1], [1, np.nan, 2], [0.0, -0.0, 3], [np.inf, 0.3, 0]], np.float32)
_ROWS = np.array([[0, 0, 0], [1, -2, 3], [-1, -2, -3], [0.5, 2, 0.25], [2.5, 0, 1]], np.float32)


def _model(op: str, *inputs: Any, dtype: str = "float32", ml: int = 3, **attributes: Any) -> Any:
    """Return a model of one node, whose inputs are constants and "x"; by default "x" alone."""
    inputs = inputs or ("x",)
    constants = {f"c{i}": x for i, x in enumerate(inputs) if not isinstance(x, str)}
    names = [f"c{i}" if f"c{i}" in constants else "x" for i in range(len(inputs))]
    initial = [onnx.numpy_helper.from_array(x, name) for name, x in constants.items()]
    is_ml = onnx.defs.has(op, "ai.onnx.ml")
    outputs = ["label", "y"] if op.endswith("Classifier") else ["y"]
    domain = "ai.onnx.ml" if is_ml else ""
    node = onnx.helper.make_node(op, names, outputs, domain=domain, **attributes)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = onnx.helper.make_tensor_value_info("x", kind, [None, 3])
    y = onnx.helper.make_empty_tensor_value_info("y")
    versions = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.onnx.ml", ml)]
    graph = onnx.helper.make_graph([node], "one", [x], [y], initial)
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=9)


def _compare(model: Any, rows: Array, folder: Path) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = np.asarray(session.run(["y"], {"x": rows})[0])
    path = packer.export_library(packer.from_trees(model), folder / "score.so")
    found = np.asarray(runtime.load(path)["predict"](rows))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-6, atol=1e-6)


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    "made",
    [
        *(
            (op, *order)
            for op in ("Min", "Max")
            for order in (("x", _f32(0, 2, 1)), (_f32(0), "x"))
        ),
        *((op,) for op in ("Sign", "Relu", "Abs", "Neg")),
        ("Clip", "x", np.float32(0).reshape(()), np.float32(1.5).reshape(())),
        ("Sub", np.arange(3, dtype="f4").reshape(1, 3), "x"),
    ],
    ids=lambda made: f"{made[0]}-{len(made[1:])}",
)
def test_missing_values_pass(made: tuple[Any, ...], tmp_path: Path) -> None:
    """NaN gives NaN, whichever operand it is."""
    _compare(_model(*made), _NAN, tmp_path)


_LINEAR = {"coefficients": [1.0, -2, 0.5], "intercepts": [0.1]}
_LINEAR_2 = {"coefficients": [1.0, -2, 0.5, 3, 1, 1], "intercepts": [0.1, 0.2]}
_SVM = {
    "coefficients": [1.0, -2],
    "support_vectors": [1.0, 0, 0, 0, 1, 1],
    "rho": [0.5],
    "kernel_type": "RBF",
    "kernel_params": [0.5, 0, 3],
}
_SVC = {**_SVM, "vectors_per_class": [1, 1], "classlabels_ints": [0, 1]}
_TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
_ONE = {"n_targets": 1, "target_ids": [0, 0], "target_weights": [1.0, 2.0]}


def _tree(prefix: str, is_double: bool = False, **attributes: Any) -> dict[str, Any]:
    """Return attributes of x[0] <= 0.3; the first id is of the true leaf, others of the other."""
    made: dict[str, Any] = {**_TREE, "nodes_values": [0.3, 0, 0], **attributes}
    count = len(made[f"{prefix}_ids"])
    made[f"{prefix}_treeids"] = [0] * count
    made.setdefault(f"{prefix}_nodeids", [1, *[2] * (count - 1)])
    names = ("nodes_values", f"{prefix}_weights", "base_values") if is_double else ()
    for name in (name for name in names if name in made):
        made[f"{name}_as_tensor"] = onnx.numpy_helper.from_array(np.array(made.pop(name)))
    return made


def _classes(post: str, ids: list[int], weights: list[float], count: int = 2) -> dict[str, Any]:
    labels = {"classlabels_int64s": [*range(count)]}
    return _tree("class", class_ids=ids, class_weights=weights, post_transform=post, **labels)


_POSTS = ("NONE", "LOGISTIC", "SOFTMAX")


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        *(("LinearClassifier", {**_LINEAR, "post_transform": post}) for post in _POSTS[:2]),
        *(("LinearClassifier", {**_LINEAR_2, "post_transform": post}) for post in _POSTS),
        *(("LinearRegressor", {**_LINEAR_2, "targets": 2, "post_transform": p}) for p in _POSTS),
        *(("SVMClassifier", {**_SVC, "post_transform": post}) for post in _POSTS[:2]),
        *(("TreeEnsembleClassifier", _classes(p, [1, 1], [0.3, -0.6])) for p in _POSTS),
        *(("TreeEnsembleClassifier", _classes(p, [0, 1, 2], [0.3, -0.6, 1], 3)) for p in _POSTS),
        ("TreeEnsembleClassifier", _classes("LOGISTIC", [0, 0], [0.3, -0.6])),
        ("TreeEnsembleClassifier", _classes("NONE", [0, 0], [0.3, 0.6])),
    ],
    ids=lambda value: value if isinstance(value, str) else value.get("post_transform"),
)
def test_post_transforms(op: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    """Of one column, of two classes and of several."""
    if op == "LinearClassifier":
        attributes = {**attributes, "classlabels_ints": [0, 1]}
    _compare(_model(op, **attributes), _ROWS, tmp_path)


@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("mode", ["LEQ", "LT", "GT", "GTE"])
def test_modes_of_trees(mode: str, tracks: int, tmp_path: Path) -> None:
    """Each with missing values that follow the true branch, or the false one."""
    modes = {"nodes_modes": [f"BRANCH_{mode}", "LEAF", "LEAF"], "nodes_values": [1.0, 0, 0]}
    made = _tree("target", **_ONE, **modes, nodes_missing_value_tracks_true=[tracks, 0, 0])
    _compare(_model("TreeEnsembleRegressor", **made), _NAN, tmp_path)


def test_float_operators_of_integers(tmp_path: Path) -> None:
    """Are rounded after each operation, as float32 is, so a tree that follows takes its side."""
    scaler = {"offset": [0.1, 0.2, 0.3], "scale": [0.3, 0.7, 1.1]}
    model = _model("Scaler", dtype="int64", **scaler)
    rows = np.arange(3000).reshape(-1, 3)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(["y"], {"x": rows})[0]
    path = packer.export_library(packer.from_trees(model), tmp_path / "score.so")
    found = np.asarray(runtime.load(path)["predict"](rows.astype("float64")))
    np.testing.assert_array_equal(found, expected)


def test_doubles_of_trees(tmp_path: Path) -> None:
    """Of nodes_values_as_tensor and its kin: ONNX Runtime computes in float64, and rounds."""
    for made in (
        _model("TreeEnsembleRegressor", dtype="float64", **_tree("target", True, **_ONE)),
        _model(
            "TreeEnsembleRegressor",
            dtype="float64",
            **_tree("target", True, **_ONE, base_values=[0.1]),
        ),
    ):
        _compare(made, np.array([[np.nextafter(0.3, 1), 0, 0], [0.3, 0, 0]]), tmp_path)


def _ensemble(*, is_cycle: bool = False, **changes: Any) -> Any:
    """Return a TreeEnsemble of two nodes; the second one has the first as child in a cycle."""
    made: dict[str, Any] = {
        "n_targets": 1,
        "nodes_featureids": [0, 1],
        "nodes_modes": np.array([0, 0], np.uint8),
        "nodes_splits": _f32(0.3, 0.5),
        "nodes_truenodeids": [1, 0],
        "nodes_falsenodeids": [0, 1],
        "nodes_trueleafs": [0, 0 if is_cycle else 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 0],
        "leaf_weights": _f32(1, 2),
        "tree_roots": [0],
        **changes,
    }
    for name, value in made.items():
        if isinstance(value, np.ndarray):
            made[name] = onnx.numpy_helper.from_array(value)
    return _model("TreeEnsemble", ml=5, **made)


@pytest.mark.parametrize("mode", range(6))
def test_modes_of_ensembles(mode: int, tmp_path: Path) -> None:
    """The numeric modes of opset 5, and the equal ones of numbers."""
    splits = _f32(1, 0.5) if mode > 3 else _f32(0.3, 0.5)
    _compare(
        _ensemble(nodes_modes=np.array([mode, 0], np.uint8), nodes_splits=splits), _NAN, tmp_path
    )


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (_ensemble(is_cycle=True), "tree 0: node . out of range, or a node has two parents"),
        (_ensemble(tree_roots=[2]), "node 2 out of range"),
        (_ensemble(nodes_truenodeids=[9, 0]), "node 9 out of range"),
        (_ensemble(nodes_modes=np.array([7, 0], np.uint8)), "nodes_modes, expected 0 to 6"),
        (_ensemble(leaf_targetids=[0, 1]), "leaf_targetids, expected 0 to 0"),
        (_ensemble(post_transform=1), r"post_transform 1, .* expected NONE \(0\)"),
        (_ensemble(aggregate_function=2), "aggregate_function 2"),
        (_ensemble(nodes_modes=np.array([4, 0], np.uint8)), r"a set \[0.30.*expected integers"),
    ],
)
def test_wrong_ensembles_are_refused(model: Any, text: str) -> None:
    """Cycles, places out of range, and what ONNX Runtime numbers differently."""
    with pytest.raises(packer.ExportError, match=text):
        packer.from_trees(model)


_REGRESSOR, _CLASSIFIER = "TreeEnsembleRegressor", "TreeEnsembleClassifier"


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (_model("Flatten", axis=0), "axis 0, expected another one"),
        (_model("Gather", "x", np.array([0])), "axis or indices, expected the last"),
        (_model("Cast", to=11), "type 11 of float32, expected float; give double inputs"),
        (_model("Cast", to=10), "type 10 of float32"),
        (_model("Softmax", axis=0), "axis, expected the last one"),
        (_model("Sub", np.ones((2, 1), np.float32), "x"), r"a constant \[2, 1\], expected one row"),
        (_model("LinearRegressor", **_LINEAR, post_transform="LOGISTIC"), "expected NONE"),
        (_model("SVMRegressor", **_SVM, n_supports=2, post_transform="SOFTMAX"), "expected NONE"),
        (_model("SVMClassifier", **_SVC, post_transform="SOFTMAX"), "expected NONE or LOGISTIC"),
        (_model("LabelEncoder", keys_floats=[0.0, np.nan], values_floats=[1.0, 2]), "key NaN"),
        (_model("LabelEncoder", keys_strings=["a"], values_floats=[1.0]), "texts, expected"),
        (
            _model("LinearClassifier", **_LINEAR_2, post_transform="PROBIT"),
            "post_transform PROBIT, expected NONE or LOGISTIC or SOFTMAX",
        ),
        (
            _model(_REGRESSOR, **_tree("target", **_ONE, post_transform="LOGISTIC")),
            "post_transform LOGISTIC of one target, expected NONE",
        ),
        (
            _model(_REGRESSOR, **_tree("target", **_ONE, aggregate_function="MIN")),
            "aggregate_function, expected SUM or AVERAGE",
        ),
        (
            _model(_REGRESSOR, **_tree("target", **_ONE, base_values=[1.0, 2.0])),
            "2 base_values, expected 1 or none",
        ),
        (
            _model(_REGRESSOR, **_tree("target", **{**_ONE, "target_ids": [0, 1]})),
            "target_ids, expected 0 to 0",
        ),
        (
            _model(
                _REGRESSOR,
                **_tree("target", n_targets=2, target_ids=[0, 1], target_weights=[1.0, 2.0],
                        base_values=[1.0, 1.0]),
            ),
            "target_ids: a value for 0 in each leaf of a tree",
        ),
        (_model(_CLASSIFIER, **_classes("NONE", [0, 0], [0.3, -0.6])), "expected LOGISTIC"),
        (_model(_CLASSIFIER, **_classes("NONE", [0, 1], [0.3, 0.6])), "a value for 1 in each leaf"),
        (
            _model(_CLASSIFIER, **_classes("NONE", [1, 1], [0.3, 0.6]), base_values=[0.5]),
            "base_values of two classes, expected none",
        ),
    ],
)  # fmt: skip
def test_what_onnx_runtime_scores_differently_is_refused(model: Any, text: str) -> None:
    """By the name of the attribute."""
    with pytest.raises(packer.ExportError, match=text):
        packer.from_trees(model)
