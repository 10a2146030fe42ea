"""Models of each library, made at test time, with what the library predicts for rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import catboost
import lightgbm
import numpy as np
import onnx
import onnxruntime
import skl2onnx
import sklearn.ensemble
import sklearn.tree
import xgboost
import ydf
from numpy.typing import NDArray

Array = NDArray[Any]
FEATURES = 12
CATEGORIES = [3, 7]  # columns of numbers that some models take as categories
_NOTHING = {"verbose": -1, "num_threads": 1, "num_leaves": 15, "min_data_in_leaf": 5}
_FEW = {"nthread": 1, "max_depth": 5, "seed": 0}


class Case(NamedTuple):
    """A model, and functions of rows: its own scores and leaves."""

    model: Any
    predict: Callable[[Array], Array]
    leaves: Callable[[Array], Array] | None
    # Multiples of the rounding of one operation by which scores may differ: the libraries' own
    # vectorised exp and pow differ from libm's.
    rounding: float = 0.0


def rows(count: int, seed: int = 0, dtype: str = "float32", *, extreme: bool = False) -> Array:
    """Return random rows; extreme ones have missing values, infinities and unknown categories."""
    random = np.random.default_rng(seed)
    made = random.normal(size=(count, FEATURES)) * 3
    made[:, CATEGORIES] = random.integers(0, 40, (count, len(CATEGORIES)))
    if extreme:
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, 1e30, -0.5, 2.0**31, 5.5])
        values = np.append(values, [np.float32(1e-35), -np.float32(1e-35)])  # 0 for LightGBM
        at = random.random(made.shape) < 0.2
        made[at] = random.choice(values, int(at.sum()))
    return made.astype(dtype)


def _training(classes: int = 0, missing: float = 0.1) -> tuple[Array, Array]:
    x = rows(600, 1)
    x[np.random.default_rng(2).random(x.shape) < missing] = np.nan
    known = np.nan_to_num(x)
    y = known[:, 0] + known[:, 1] * known[:, 2] + (known[:, 3] % 5) + 3 * (known[:, 7] % 3)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return x, y


def _lightgbm(classes: int = 0, positive: bool = False, **options: Any) -> Case:
    x, y = _training(classes)
    y = np.abs(y) + 1 if positive else y
    settings = {"objective": "regression", **_NOTHING, **options}
    categories = settings.pop("categories", "auto")
    data = lightgbm.Dataset(x, y, categorical_feature=categories, free_raw_data=False)
    model = lightgbm.train(settings, data, 20)

    def leaves(rows: Array) -> Array:
        found: Array = model.predict(rows, pred_leaf=True)
        return found

    return Case(model, lambda rows: np.asarray(model.predict(rows)), leaves)


def _xgboost(classes: int = 0, outputs: int = 0, **options: Any) -> Case:
    x, y = _training(classes)
    y = (
        np.stack([y, -y, y * y], axis=1)[:, :outputs]
        if outputs
        else np.abs(y) + (0 if classes else 1)
    )
    settings = {"objective": "reg:squarederror", **_FEW, **options}
    types = ["float"] * FEATURES
    if settings.pop("categories", False):
        for column in CATEGORIES:
            types[column] = "c"

    def data(rows: Array, label: Array | None = None) -> Any:
        return xgboost.DMatrix(rows, label, feature_types=types, enable_categorical=True)

    model = xgboost.train(settings, data(x, y), 20)

    def leaves(rows: Array) -> Array:
        return np.asarray(model.predict(data(rows), pred_leaf=True)).reshape(len(rows), -1)

    return Case(model, lambda rows: model.predict(data(rows)), leaves)


def _sklearn(
    kind: type, classes: int = 0, *, score: str = "", rounding: float = 0.0, **options: Any
) -> Case:
    is_classifier = classes > 0
    missing = 0.0 if "Gradient" in kind.__name__ and "Hist" not in kind.__name__ else 0.1
    x, y = _training(classes, missing)
    y = np.abs(y) if options.pop("positive", False) else y
    model = kind(random_state=0, **options).fit(x, y)
    name = score or ("predict_proba" if is_classifier else "predict")

    def leaves(rows: Array) -> Array:
        found = np.asarray(model.apply(rows), np.int64)
        return found.reshape(len(rows), -1)

    has_leaves = hasattr(model, "apply")
    return Case(model, getattr(model, name), leaves if has_leaves else None, rounding)


def _catboost(kind: type, loss: str, classes: int = 0, **options: Any) -> Case:
    x, y = _training(classes)
    y = y if classes else np.abs(y)
    settings = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    model = kind(iterations=20, depth=4, loss_function=loss, **settings, **options).fit(x, y)
    form = "Probability" if classes else "Exponent" if loss == "Poisson" else "RawFormulaVal"

    def leaves(rows: Array) -> Array:
        return np.asarray(model.calc_leaf_indexes(rows))

    predict = lambda rows: np.asarray(model.predict(rows, prediction_type=form))  # noqa: E731
    return Case(model, predict, leaves, 4 if form != "RawFormulaVal" else 0)


def _onnx(kind: type, classes: int = 0, **options: Any) -> Case:
    """Return a model of scikit-learn as ONNX; ONNX Runtime adds values in another order."""
    x, y = _training(classes, 0.0)
    model = kind(random_state=0, **options).fit(x, y)
    made = skl2onnx.to_onnx(model, x[:1], options={"zipmap": False} if classes else None)
    session = onnxruntime.InferenceSession(made.SerializeToString())

    def predict(rows: Array) -> Array:
        found = np.asarray(session.run(None, {session.get_inputs()[0].name: rows})[-1])
        return found if classes else found[:, 0]

    return Case(made, predict, None, 32)


def _ensemble(dtype: str) -> Case:
    """Return a TreeEnsemble of opset 5 with each mode, as ONNX Runtime has it."""
    modes = {"<=": 0, "<": 1, ">=": 2, ">": 3, "==": 4, "!=": 5, "in": 6}
    # The test, and what follows if it is true and if it is false: nodes, or leaves below 0.
    nodes: list[tuple[int, str, float, int, int]] = [
        *((0, "<=", 0.5, 1, 2), (1, "<", 0.25, 3, -1), (3, "in", 0, 4, 5)),
        *((2, ">", -0.5, -2, -3), (4, ">=", 1.5, -4, -1), (7, "!=", 5, -5, -6)),
        *((5, "==", 0.0, -2, -2), (7, "in", 0, -3, -4)),
    ]
    roots = [0, 6, 7]
    values = np.linspace(-1, 2, 12).reshape(2, 6).astype(dtype)
    columns = list(zip(*nodes, strict=True))
    attributes: dict[str, Any] = {
        "n_targets": 2,
        "nodes_featureids": columns[0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 1, 0, 0, 0, 0],
        "leaf_targetids": [k % 2 for k in range(6)],
        "tree_roots": roots,
        "aggregate_function": 0,
    }
    for side, branches in zip(("true", "false"), columns[3:], strict=True):
        attributes[f"nodes_{side}nodeids"] = [b if b >= 0 else -b - 1 for b in branches]
        attributes[f"nodes_{side}leafs"] = [int(b < 0) for b in branches]
    for name, array in (
        ("nodes_splits", np.array(columns[2], dtype)),
        ("nodes_modes", np.array([modes[mode] for mode in columns[1]], np.uint8)),
        ("leaf_weights", values[0]),
        ("membership_values", np.array([1, 2, 30, np.nan, 5, 7, np.nan], dtype)),
    ):
        attributes[name] = onnx.numpy_helper.from_array(array)
    node = onnx.helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [
        onnx.helper.make_tensor_value_info(name, kind, [None, extent])
        for name, extent in (("x", FEATURES), ("y", 2))
    ]
    graph = onnx.helper.make_graph([node], "ensemble", ends[:1], ends[1:])
    versions = [onnx.helper.make_opsetid("ai.onnx.ml", 5), onnx.helper.make_opsetid("", 18)]
    made = onnx.helper.make_model(graph, opset_imports=versions, ir_version=9)
    session = onnxruntime.InferenceSession(made.SerializeToString())

    def predict(rows: Array) -> Array:
        return np.asarray(session.run(None, {"x": rows.astype(dtype)})[0])

    return Case(made, predict, None, 4)


def _ydf(kind: str, classes: int = 0, rounding: float = 0.0, **options: Any) -> Case:
    """Return a model of YDF; some columns are categories."""
    x, y = _training(classes)
    named = options.pop("categories", False)
    codes = CATEGORIES if named else []
    semantics = [
        ydf.Feature(f"f{i}", ydf.Semantic.CATEGORICAL if i in codes else ydf.Semantic.NUMERICAL)
        for i in range(FEATURES)
    ]

    def data(rows: Array) -> dict[str, Array]:
        found = {f"f{i}": column for i, column in enumerate(rows.T)}
        return {
            **found,
            **{
                f"f{i}": np.where(np.abs(rows[:, i]) < 99, rows[:, i], 0).astype(int) for i in codes
            },
        }

    label = y if classes else np.abs(y)
    task = ydf.Task.CLASSIFICATION if classes else ydf.Task.REGRESSION
    learner = getattr(ydf, kind)(label="y", features=semantics, task=task, **options)
    model = learner.train({**data(x), "y": label}, verbose=0)

    def leaves(rows: Array) -> Array:
        return np.asarray(model.predict_leaves({**data(rows), "y": np.resize(label, len(rows))}))

    return Case(model, lambda rows: model.predict(data(rows)), leaves, rounding)


_FOREST = {"n_estimators": 15, "max_depth": 8}
_ENSEMBLE, _TREE = sklearn.ensemble, sklearn.tree
CASES: dict[str, Callable[[], Case]] = {
    "lightgbm": _lightgbm,
    "lightgbm-large": lambda: _lightgbm(num_leaves=256, min_data_in_leaf=1, min_data_in_bin=1),
    "lightgbm-sqrt": lambda: _lightgbm(reg_sqrt=True),
    "lightgbm-binary": lambda: _lightgbm(2, objective="binary", sigmoid=1.7),
    "lightgbm-multiclass": lambda: _lightgbm(4, objective="multiclass", num_class=4),
    "lightgbm-ova": lambda: _lightgbm(4, objective="multiclassova", num_class=4),
    "lightgbm-poisson": lambda: _lightgbm(positive=True, objective="poisson"),
    "lightgbm-entropy": lambda: _lightgbm(2, objective="cross_entropy"),
    "lightgbm-lambda": lambda: _lightgbm(2, objective="cross_entropy_lambda"),
    "lightgbm-l1": lambda: _lightgbm(objective="regression_l1"),
    "lightgbm-dart": lambda: _lightgbm(boosting="dart"),
    "lightgbm-rf": lambda: _lightgbm(
        boosting="rf", bagging_freq=1, bagging_fraction=0.5, feature_fraction=0.5
    ),
    "lightgbm-categories": lambda: _lightgbm(categories=CATEGORIES, max_cat_to_onehot=1),
    "lightgbm-onehot": lambda: _lightgbm(categories=CATEGORIES, max_cat_to_onehot=100),
    "lightgbm-linear": lambda: _lightgbm(linear_tree=True),
    "lightgbm-linear-classes": lambda: _lightgbm(
        3, linear_tree=True, objective="multiclass", num_class=3
    ),
    "lightgbm-zero": lambda: _lightgbm(zero_as_missing=True),
    "lightgbm-no-missing": lambda: _lightgbm(use_missing=False),
    "xgboost": _xgboost,
    "xgboost-logistic": lambda: _xgboost(2, objective="binary:logistic"),
    "xgboost-hinge": lambda: _xgboost(2, objective="binary:hinge"),
    "xgboost-softprob": lambda: _xgboost(3, objective="multi:softprob", num_class=3),
    "xgboost-softmax": lambda: _xgboost(3, objective="multi:softmax", num_class=3),
    "xgboost-gamma": lambda: _xgboost(objective="reg:gamma"),
    "xgboost-dart": lambda: _xgboost(booster="dart", rate_drop=0.3),
    "xgboost-forest": lambda: _xgboost(num_parallel_tree=4, subsample=0.5, learning_rate=1),
    "xgboost-categories": lambda: _xgboost(categories=True, max_cat_to_onehot=1),
    "xgboost-onehot": lambda: _xgboost(categories=True, max_cat_to_onehot=100),
    "xgboost-outputs": lambda: _xgboost(outputs=3),
    "xgboost-vectors": lambda: _xgboost(outputs=3, multi_strategy="multi_output_tree"),
    "catboost": lambda: _catboost(catboost.CatBoostRegressor, "RMSE"),
    "catboost-poisson": lambda: _catboost(catboost.CatBoostRegressor, "Poisson"),
    "catboost-binary": lambda: _catboost(catboost.CatBoostClassifier, "Logloss", 2),
    "catboost-classes": lambda: _catboost(catboost.CatBoostClassifier, "MultiClass", 3),
    "catboost-max": lambda: _catboost(catboost.CatBoostRegressor, "MAE", nan_mode="Max"),
    "onnx-forest": lambda: _onnx(_ENSEMBLE.RandomForestRegressor, **_FOREST),
    "onnx-classes": lambda: _onnx(_ENSEMBLE.RandomForestClassifier, 3, **_FOREST),
    "onnx-two-classes": lambda: _onnx(_ENSEMBLE.RandomForestClassifier, 2, **_FOREST),
    "onnx-boosting": lambda: _onnx(_ENSEMBLE.GradientBoostingRegressor),
    "onnx-boosting-binary": lambda: _onnx(_ENSEMBLE.GradientBoostingClassifier, 2),
    "onnx-ensemble": lambda: _ensemble("float32"),
    "onnx-ensemble-double": lambda: _ensemble("float64"),
    "ydf": lambda: _ydf("GradientBoostedTreesLearner", num_trees=20),
    "ydf-binary": lambda: _ydf("GradientBoostedTreesLearner", 2, num_trees=20),
    "ydf-classes": lambda: _ydf("GradientBoostedTreesLearner", 3, 4, num_trees=20),
    "ydf-poisson": lambda: _ydf("GradientBoostedTreesLearner", loss="POISSON", num_trees=20),
    "ydf-discrete": lambda: _ydf(
        "GradientBoostedTreesLearner", num_trees=20, discretize_numerical_columns=True
    ),
    "ydf-forest": lambda: _ydf("RandomForestLearner", num_trees=10),
    "ydf-votes": lambda: _ydf("RandomForestLearner", 3, num_trees=10),
    "ydf-shares": lambda: _ydf("RandomForestLearner", 2, 4, num_trees=10, winner_take_all=False),
    "ydf-categories": lambda: _ydf("GradientBoostedTreesLearner", 2, num_trees=20, categories=True),
    "sklearn-tree": lambda: _sklearn(_TREE.DecisionTreeRegressor),
    "sklearn-tree-classes": lambda: _sklearn(_TREE.DecisionTreeClassifier, 3, max_depth=5),
    "sklearn-forest": lambda: _sklearn(_ENSEMBLE.RandomForestRegressor, **_FOREST),
    "sklearn-forest-classes": lambda: _sklearn(_ENSEMBLE.RandomForestClassifier, 3, **_FOREST),
    "sklearn-extra": lambda: _sklearn(_ENSEMBLE.ExtraTreesRegressor, **_FOREST),
    "sklearn-boosting": lambda: _sklearn(_ENSEMBLE.GradientBoostingRegressor),
    "sklearn-boosting-binary": lambda: _sklearn(
        _ENSEMBLE.GradientBoostingClassifier, 2, rounding=4
    ),
    "sklearn-boosting-classes": lambda: _sklearn(
        _ENSEMBLE.GradientBoostingClassifier, 3, rounding=8
    ),
    "sklearn-histogram": lambda: _sklearn(_ENSEMBLE.HistGradientBoostingRegressor),
    "sklearn-histogram-poisson": lambda: _sklearn(
        _ENSEMBLE.HistGradientBoostingRegressor, loss="poisson", positive=True, rounding=4
    ),
    "sklearn-histogram-binary": lambda: _sklearn(
        _ENSEMBLE.HistGradientBoostingClassifier, 2, rounding=4
    ),
    "sklearn-histogram-classes": lambda: _sklearn(
        _ENSEMBLE.HistGradientBoostingClassifier, 3, rounding=8
    ),
    "sklearn-isolation": lambda: _sklearn(
        _ENSEMBLE.IsolationForest, score="decision_function", rounding=8, max_features=6
    ),
}
