"""Pipelines of numbers: scalers, encoders, linear models and SVM, around a forest or alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import skl2onnx
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.impute import KNNImputer
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from xgboost import XGBRegressor

import packer
import runtime

from .models import CATEGORIES, Array, rows
from .pipelines import PIPELINES, PROBABLE, Fitted, columns, fit

# Of scikit-learn: few iterations, unknown categories, parameters that a later version drops.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


def _given(accepts: str, dtype: str = "float64") -> Array:
    """Return random rows with what a model accepts; categories are some that no fit has seen."""
    given = rows(3000, 3, dtype, extreme=True)
    given = np.where(np.abs(given) > 1e6, np.inf, given)
    given[np.isinf(given) & (accepts != "all")] = 1.5
    if accepts == "finite":
        given = np.nan_to_num(given, nan=0.5)
    given[:, CATEGORIES] = rows(3000, 3, dtype)[:, CATEGORIES] + 3
    return given


def _compare(found: Any, expected: Array, rounding: float) -> None:
    """Sums of products are added in another order than BLAS has."""
    found = np.asarray(found)
    assert found.shape == expected.shape
    least = np.finfo(found.dtype).eps * rounding
    np.testing.assert_allclose(found, expected, rtol=least, atol=least)


def _load(model: Any, folder: Path) -> Any:
    return runtime.load(packer.export_library(packer.from_trees(model), folder / "score.so"))


@pytest.mark.parametrize("name", PIPELINES)
def test_scores_are_of_scikit_learn(name: str, tmp_path: Path) -> None:
    """In float64, of many rows and of one."""
    case = PIPELINES[name]()
    given = _given(case.accepts)
    expected = case.scores(given)
    predict = _load(case.model, tmp_path)["predict"]
    _compare(predict(given), expected, 1000)
    _compare(predict(given[:1]), expected[:1], 1000)
    _compare(predict(given[7]), expected[7], 1000)


@pytest.mark.parametrize("name", PIPELINES)
def test_scores_are_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    """The same models as ONNX-ML, in float32, with infinities where ONNX Runtime takes them."""
    case = PIPELINES[name]()
    if case.is_onnx:
        _compare_onnx(case, tmp_path)


def _compare_onnx(case: Fitted, folder: Path) -> None:
    is_scaler = case.accepts == "missing" and not hasattr(case.model, "predict")
    is_encoder = isinstance(case.model, ColumnTransformer)
    given = _given("all" if is_scaler and not is_encoder else case.accepts, "float32")
    options = {"zipmap": False} if hasattr(case.model, "classes_") else None
    made = skl2onnx.to_onnx(case.model, given[:1], options=options)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    expected = np.asarray(session.run(None, {session.get_inputs()[0].name: given})[-1])
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    found = np.asarray(_load(path, folder)["predict"](given))
    _compare(found.reshape(expected.shape), expected, 2000)


@pytest.mark.parametrize("classes", PROBABLE)
def test_probabilities_of_support_vectors(classes: int, tmp_path: Path) -> None:
    """Of pairs of classes, coupled as libsvm does, from the object and from ONNX-ML."""
    case = PROBABLE[classes]()
    given = _given("finite")
    _compare(_load(case.model, tmp_path)["predict"](given), case.scores(given), 1000)
    _compare_onnx(case, tmp_path)


def test_float32_rows_become_float64(tmp_path: Path) -> None:
    """And `raw` scores are decisions."""
    case = PIPELINES["logistic"]()
    given = _given("finite", "float32")
    module = packer.from_trees(case.model, raw=True)
    predict = runtime.load(packer.export_library(module, tmp_path / "raw.so"))["predict"]
    _compare(predict(given), case.model.decision_function(given.astype("float64")), 1000)


def test_an_unknown_category_is_an_error(tmp_path: Path) -> None:
    """If the encoder was fitted so, as in scikit-learn; another row has its result."""
    model = make_pipeline(columns(handle_unknown="error"), LinearRegression())
    predict = _load(fit(lambda: model, accepts="missing").model, tmp_path)["predict"]
    given = rows(200, 1, "float64")
    assert np.isfinite(np.asarray(predict(given))).all()
    given[150, CATEGORIES[0]] = 1000
    with pytest.raises(ValueError, match="a category, expected one that the encoder knows"):
        predict(given)


def test_leaves_and_metadata_of_a_pipeline(tmp_path: Path) -> None:
    """The forest's leaves of transformed rows; names of columns and classes."""
    import pandas

    case = PIPELINES["forest"]()
    given = _given("missing")
    model = _load(case.model, tmp_path)
    before, forest = case.model[:-1], case.model[-1]
    leaves = np.asarray(model["leaves"](given))
    np.testing.assert_array_equal(leaves, forest.apply(before.transform(given)))
    metadata = model.imported_modules[-1].metadata
    assert (metadata["trees"], json.loads(metadata["classes"])) == ("7", ["0", "1", "2"])
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 0.0]})
    scaled = ColumnTransformer([("s", StandardScaler(), ["b"])], remainder="passthrough").fit(frame)
    model = _load(scaled, tmp_path)
    assert json.loads(model.imported_modules[-1].metadata["feature_names"]) == ["a", "b"]
    _compare(model["predict"](frame.to_numpy()), np.asarray(scaled.transform(frame)), 1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (KNeighborsClassifier, "KNeighborsClassifier is not supported, expected a forest"),
        (KMeans, "KMeans is not supported, expected a forest"),
        (lambda: make_pipeline(KNNImputer(), LinearRegression()), "KNNImputer is not supported"),
        (lambda: FunctionTransformer(np.cbrt), "FunctionTransformer of <ufunc 'cbrt'>"),
        (lambda: SGDClassifier(loss="modified_huber"), "loss 'modified_huber'"),
        (lambda: XGBRegressor(n_estimators=1, missing=0), "missing=0, expected NaN"),
        (lambda: ColumnTransformer([("x", "drop", [0])]), "all columns are dropped"),
    ],
)
def test_other_models_are_refused(make: Any, text: str) -> None:
    """By name."""
    x = rows(50, 1)
    with pytest.raises(packer.ExportError, match=text):
        packer.from_trees(make().fit(x[:, :2], x[:, 3] > 10))


def test_other_kernels_are_refused() -> None:
    """Of a matrix, or a function of the user."""
    model = SVR().fit(rows(50, 1), rows(50, 1)[:, 0])
    model.kernel = "precomputed"
    with pytest.raises(packer.ExportError, match="SVR: kernel 'precomputed', expected linear"):
        packer.from_trees(model)


def test_texts_are_refused() -> None:
    """Of encoders, and of inputs of ONNX-ML."""
    model = OneHotEncoder().fit(np.array([["red"], ["blue"]], object))
    with pytest.raises(packer.ExportError, match="categories of column 0 are texts"):
        packer.from_trees(model)
    made = skl2onnx.to_onnx(
        model, initial_types=[("x", skl2onnx.common.data_types.StringTensorType([None, 1]))]
    )
    with pytest.raises(packer.ExportError, match="texts are refused"):
        packer.from_trees(made)
    with pytest.raises(packer.ExportError, match="is not fitted; call fit first"):
        packer.from_trees(make_pipeline(StandardScaler(), LinearRegression()))
    with pytest.raises(packer.ExportError, match="no steps but 'passthrough'"):
        packer.from_trees(make_pipeline("passthrough"))


def test_other_operators_are_refused() -> None:
    """By name, with the node."""
    made = skl2onnx.to_onnx(PIPELINES["linear"]().model, rows(1))
    made.graph.node[0].op_type = "Det"
    with pytest.raises(packer.ExportError, match="Det 'LinearRegressor': not supported"):
        packer.from_trees(made)
