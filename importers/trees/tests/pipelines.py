"""Pipelines, and models of scikit-learn beside forests, fitted at test time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from .models import CATEGORIES, FEATURES, Array, rows

NUMBERS = [i for i in range(FEATURES) if i not in CATEGORIES]


class Fitted(NamedTuple):
    """A model, and what it has for rows."""

    model: Any
    accepts: str  # "all" numbers, "missing" values, or "finite" ones
    is_onnx: bool  # whether skl2onnx and ONNX Runtime have it

    def scores(self, given: Array) -> Array:
        """Return probabilities, or else decisions, predictions or transformed rows."""
        for name in ("predict_proba", "decision_function", "predict", "transform"):
            if hasattr(self.model, name):
                found = getattr(self.model, name)(given)
                break
        found = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def fit(
    make: Callable[[], Any], classes: int = 0, accepts: str = "finite", onnx: bool = True
) -> Fitted:
    """Fit a model to classes, or to a positive number."""
    x = rows(400, 1, "float64")
    if accepts == "missing":
        x[np.random.default_rng(2).random(x.shape) < 0.1] = np.nan
        x[:, CATEGORIES] = rows(400, 1)[:, CATEGORIES]
    y = np.abs(np.nan_to_num(x[:, 0] + x[:, 1] * x[:, 2])) + 0.1
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return Fitted(make().fit(x, y), accepts, onnx)


def columns(**options: Any) -> ColumnTransformer:
    """Scale numbers whose missing values are replaced, and encode categories."""
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encoder = OneHotEncoder(**{"handle_unknown": "ignore", **options})
    return ColumnTransformer([("numbers", scaled, NUMBERS), ("codes", encoder, CATEGORIES)])


_RANKS = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
_FEW = {"max_iter": 30, "random_state": 0}
PIPELINES: dict[str, Callable[[], Fitted]] = {
    "standard": lambda: fit(StandardScaler, accepts="missing"),
    "min-max": lambda: fit(lambda: MinMaxScaler((-1, 2), clip=True), accepts="missing"),
    "max-abs": lambda: fit(MaxAbsScaler, accepts="missing"),
    "robust": lambda: fit(RobustScaler, accepts="missing"),
    "l1": lambda: fit(lambda: Normalizer("l1")),
    "l2": lambda: fit(Normalizer),
    "max": lambda: fit(lambda: Normalizer("max"), onnx=False),
    "binarizer": lambda: fit(lambda: Binarizer(threshold=1.5)),
    "imputer": lambda: fit(SimpleImputer, accepts="missing"),
    "indicator": lambda: fit(
        lambda: SimpleImputer(add_indicator=True), accepts="missing", onnx=False
    ),
    "one-hot": lambda: fit(lambda: columns(drop="first"), accepts="missing", onnx=False),
    "infrequent": lambda: fit(
        lambda: columns(min_frequency=12, handle_unknown="infrequent_if_exist"),
        accepts="missing",
        onnx=False,
    ),
    "ordinal": lambda: fit(
        lambda: ColumnTransformer(
            [("codes", OrdinalEncoder(**_RANKS), CATEGORIES)], remainder="passthrough"
        ),
        accepts="missing",
    ),
    "bins": lambda: fit(lambda: KBinsDiscretizer(4), onnx=False),
    "bins-ordinal": lambda: fit(lambda: KBinsDiscretizer(4, encode="ordinal"), onnx=False),
    "bins-constant": lambda: fit(
        lambda: make_pipeline(Binarizer(threshold=1e9), KBinsDiscretizer(3)), onnx=False
    ),
    "weights": lambda: fit(
        lambda: ColumnTransformer(
            [("n", StandardScaler(), NUMBERS), ("c", MinMaxScaler(), CATEGORIES)],
            transformer_weights={"n": 2.0},
        ),
        onnx=False,
    ),
    "ordinal-frequent": lambda: fit(
        lambda: make_pipeline(
            FunctionTransformer(np.trunc),
            OrdinalEncoder(max_categories=5, encoded_missing_value=-2, **_RANKS),
        ),
        accepts="missing",
        onnx=False,
    ),
    "polynomial": lambda: fit(PolynomialFeatures, onnx=False),
    "power": lambda: fit(PowerTransformer, accepts="missing"),
    "log": lambda: fit(
        lambda: make_pipeline(FunctionTransformer(np.abs), FunctionTransformer(np.log1p)),
        onnx=False,
    ),
    "selected": lambda: fit(lambda: SelectKBest(f_regression, k=4)),
    "pca": lambda: fit(lambda: PCA(5, whiten=True)),
    "svd": lambda: fit(lambda: TruncatedSVD(5)),
    "union": lambda: fit(lambda: make_union(PCA(3), StandardScaler())),
    "linear": lambda: fit(LinearRegression),
    "ridge": lambda: fit(lambda: make_pipeline(columns(), Ridge()), accepts="missing"),
    "poisson": lambda: fit(lambda: make_pipeline(StandardScaler(), PoissonRegressor())),
    "logistic": lambda: fit(lambda: make_pipeline(StandardScaler(), LogisticRegression()), 2),
    "logistic-classes": lambda: fit(
        lambda: make_pipeline(columns(), LogisticRegression()), 3, accepts="missing"
    ),
    "ridge-classes": lambda: fit(RidgeClassifier, 3, onnx=False),
    "linear-svc": lambda: fit(lambda: make_pipeline(StandardScaler(), LinearSVC()), 3, onnx=False),
    "sgd": lambda: fit(
        lambda: make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)), 3
    ),
    "lda": lambda: fit(LinearDiscriminantAnalysis, 3),
    "naive": lambda: fit(GaussianNB, 3, onnx=False),
    "mlp": lambda: fit(
        lambda: make_pipeline(StandardScaler(), MLPClassifier((8, 5), activation="tanh", **_FEW)), 2
    ),
    "mlp-numbers": lambda: fit(
        lambda: make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(8,), **_FEW))
    ),
    "svr": lambda: fit(lambda: make_pipeline(StandardScaler(), SVR())),
    "svr-poly": lambda: fit(lambda: make_pipeline(StandardScaler(), SVR(kernel="poly", coef0=1.0))),
    "one-class": lambda: fit(lambda: make_pipeline(StandardScaler(), OneClassSVM())),
    "svc": lambda: fit(lambda: make_pipeline(StandardScaler(), SVC()), 2, onnx=False),
    "svc-linear": lambda: fit(
        lambda: make_pipeline(StandardScaler(), SVC(kernel="linear")), 4, onnx=False
    ),
    "svc-sigmoid": lambda: fit(lambda: make_pipeline(StandardScaler(), SVC(kernel="sigmoid")), 3),
    "svc-pairs": lambda: fit(
        lambda: make_pipeline(StandardScaler(), NuSVC(decision_function_shape="ovo")), 3
    ),
    "calibrated": lambda: fit(
        lambda: CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), cv=3), 3, onnx=False
    ),
    "calibrated-two": lambda: fit(
        lambda: make_pipeline(
            StandardScaler(), CalibratedClassifierCV(LinearSVC(), ensemble=False)
        ),
        2,
        onnx=False,
    ),
    "calibrated-naive": lambda: fit(
        lambda: make_pipeline("passthrough", CalibratedClassifierCV(GaussianNB(), cv=2)),
        3,
        onnx=False,
    ),
    "calibrated-mlp": lambda: fit(
        lambda: CalibratedClassifierCV(MLPClassifier((4,), **_FEW), cv=2), 2, onnx=False
    ),
    "forest": lambda: fit(
        lambda: make_pipeline(columns(), RandomForestClassifier(7, max_depth=6, random_state=0)),
        3,
        accepts="missing",
    ),
    "boosting": lambda: fit(
        lambda: make_pipeline(StandardScaler(), GradientBoostingRegressor(random_state=0))
    ),
    "lightgbm": lambda: fit(
        lambda: make_pipeline(
            columns(), lightgbm.LGBMRegressor(n_estimators=9, verbose=-1, n_jobs=1)
        ),
        accepts="missing",
        onnx=False,
    ),
    # XGBoost takes the zeros of a sparse matrix as missing.
    "xgboost-sparse": lambda: fit(
        lambda: make_pipeline(
            ColumnTransformer(
                [("codes", OneHotEncoder(handle_unknown="ignore"), CATEGORIES)],
                remainder="passthrough",
                sparse_threshold=1,
            ),
            xgboost.XGBRegressor(n_estimators=9, n_jobs=1),
        ),
        accepts="missing",
        onnx=False,
    ),
}
PROBABLE = {
    count: partial(
        fit,
        lambda: make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
        count,
    )
    for count in (2, 4)
}
