"""Fitted models of scikit-learn as steps: linear ones, SVM, naive Bayes, MLP.

A classifier's scores are the results of `predict_proba`, or of `decision_function` if it has none;
a regressor's scores are what `predict` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from packer import ExportError

from ..steps import Columns, Op, Steps
from .transformers import transform
from .vectors import Kernel, kernel_values, pair_values, probabilities, votes

_REGRESSORS = (
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV"),
    *("LassoLarsIC", "Lars", "LarsCV", "ElasticNet", "ElasticNetCV", "MultiTaskLasso"),
    *("MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "BayesianRidge"),
    *("ARDRegression", "HuberRegressor", "QuantileRegressor", "TheilSenRegressor"),
    *("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "SGDRegressor"),
    *("PassiveAggressiveRegressor", "LinearSVR"),
)
# Of decision_function.
_DECIDERS = (
    *("RidgeClassifier", "RidgeClassifierCV", "Perceptron", "PassiveAggressiveClassifier"),
    "LinearSVC",
)
_EXP = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")


def score(model: Any, steps: Steps, x: Columns, where: str) -> Columns:
    """Add the steps of a fitted model; `steps.raw_out` becomes the scores before the link.

    Raises ExportError if it is not fitted, or has an option that is not supported.
    """
    if not hasattr(model, "n_features_in_"):
        raise ExportError(f"{where}: is not fitted; call fit first")
    return _SCORERS[type(model).__name__](model, steps, x)


def is_score(model: Any) -> bool:
    """Return True if a model of scikit-learn is one of these."""
    return type(model).__name__ in _SCORERS


def _linear(model: Any, steps: Steps, x: Columns) -> Columns:
    coef = np.atleast_2d(np.asarray(_dense(model.coef_), np.float64))
    steps.raw_out = steps.each(Op.ADD, steps.matmul(x, coef.T), np.asarray(model.intercept_))
    return steps.raw_out


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _exp(model: Any, steps: Steps, x: Columns) -> Columns:
    found = _linear(model, steps, x)
    is_identity = getattr(model, "link", "auto") == "identity" or (
        getattr(model, "link", "log") == "auto" and model.power <= 0
    )
    return found if is_identity else steps.each(Op.EXP, found)


def _two(steps: Steps, p: Columns) -> Columns:
    """Return the probabilities of two classes."""
    return steps.join([steps.each(Op.SUB, 1.0, p), p])


def _one_by_one(steps: Steps, found: Columns) -> Columns:
    """Return probabilities of classes, of the logits of each against the rest."""
    found = steps.each(Op.LOGISTIC, found)
    if found.width == 1:
        return _two(steps, found)
    # Zeros for all classes become equal probabilities.
    total = steps.matmul(found, np.ones((found.width, 1)))
    found = steps.each(Op.ADD, found, steps.each(Op.EQUAL, total, 0.0))
    return steps.each(Op.DIV, found, steps.matmul(found, np.ones((found.width, 1))))


def _logistic(model: Any, steps: Steps, x: Columns) -> Columns:
    found = _linear(model, steps, x)
    choice = getattr(model, "multi_class", "deprecated")
    is_each = choice == "ovr" or (
        choice != "multinomial" and (found.width == 1 or model.solver == "liblinear")
    )
    if is_each:
        return _one_by_one(steps, found)
    if found.width == 1:
        found = steps.join([steps.each(Op.MUL, found, -1.0), found])
    return steps.run(Op.SOFTMAX, found, found.width)


def _sgd(model: Any, steps: Steps, x: Columns) -> Columns:
    if model.loss == "modified_huber":
        raise ExportError("SGDClassifier: loss 'modified_huber', expected another one")
    found = _linear(model, steps, x)
    return _one_by_one(steps, found) if model.loss == "log_loss" else found


def _discriminant(model: Any, steps: Steps, x: Columns) -> Columns:
    found = _linear(model, steps, x)
    if found.width == 1:
        return _two(steps, steps.each(Op.LOGISTIC, found))
    return steps.run(Op.SOFTMAX, found, found.width)


def _naive(model: Any, steps: Steps, x: Columns) -> Columns:
    mean, variance = np.asarray(model.theta_), np.asarray(model.var_)
    classes, features = mean.shape
    far = steps.each(Op.SUB, steps.copy(x, np.tile(np.arange(features), classes)), mean)
    parts = steps.each(Op.DIV, steps.each(Op.MUL, far, far), variance)
    sums = steps.matmul(parts, np.repeat(-0.5 * np.eye(classes), features, axis=0))
    base = np.log(model.class_prior_) - 0.5 * np.log(2 * np.pi * variance).sum(axis=1)
    steps.raw_out = steps.each(Op.ADD, sums, base)
    return steps.run(Op.SOFTMAX, steps.raw_out, classes)


def _activated(steps: Steps, x: Columns, name: str) -> Columns:
    if name == "identity":
        return x
    if name == "relu":
        return steps.each(Op.GREATEST, x, 0.0)
    if name == "softmax":
        return steps.run(Op.SOFTMAX, x, x.width)
    return steps.each({"tanh": Op.TANH, "logistic": Op.LOGISTIC, "exp": Op.EXP}[name], x)


def _perceptron(model: Any, steps: Steps, x: Columns) -> Columns:
    for i, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        x = _activated(steps, x, model.activation) if i else x
        x = steps.each(Op.ADD, steps.matmul(x, weight), bias)
    steps.raw_out = x
    found = _activated(steps, x, model.out_activation_)
    return _two(steps, found) if hasattr(model, "classes_") and x.width == 1 else found


def _kernel(model: Any, steps: Steps, x: Columns) -> Columns:
    if callable(model.kernel) or model.kernel == "precomputed":
        text = f"kernel {model.kernel!r}, expected linear, poly, rbf or sigmoid"
        raise ExportError(f"{type(model).__name__}: {text}")
    vectors = np.asarray(_dense(model.support_vectors_))
    kernel = Kernel(model.kernel, float(model._gamma), float(model.coef0), float(model.degree))
    return kernel_values(steps, x, vectors, kernel)


def _vector_regressor(model: Any, steps: Steps, x: Columns) -> Columns:
    found = steps.matmul(_kernel(model, steps, x), np.asarray(_dense(model.dual_coef_)).T)
    return steps.each(Op.ADD, found, model.intercept_)


def _vector_classifier(model: Any, steps: Steps, x: Columns) -> Columns:
    values, classes = _kernel(model, steps, x), len(model.classes_)
    coefficients, rho = np.asarray(_dense(model._dual_coef_)), np.asarray(model._intercept_)
    pairs = pair_values(steps, values, coefficients, np.asarray(model._n_support), rho)
    if classes == 2:
        steps.raw_out = steps.each(Op.MUL, pairs, -1.0)
    elif model.decision_function_shape == "ovr":
        steps.raw_out = votes(steps, pairs, classes)
    else:
        steps.raw_out = pairs
    if not len(model._probA):
        return steps.raw_out
    return probabilities(steps, pairs, model._probA, model._probB, classes)


def _calibrated(model: Any, steps: Steps, x: Columns) -> Columns:
    """Return the mean of calibrated classifiers, each with a sigmoid for each decision."""
    found: list[Columns] = []
    for one in model.calibrated_classifiers_:
        *before, last = [part for _, part in getattr(one.estimator, "steps", [("", one.estimator)])]
        if one.method != "sigmoid" or not is_score(last):
            text = f"{one.method} of {type(last).__name__}, expected a sigmoid of a supported model"
            raise ExportError(f"CalibratedClassifierCV: {text}; forests are not supported here")
        rows = x
        for part in before:
            rows = transform(part, steps, rows, "CalibratedClassifierCV")
        decisions = score(last, steps, rows, "CalibratedClassifierCV")
        if hasattr(last, "decision_function"):
            decisions = steps.raw_out or decisions
        elif decisions.width == 2:
            decisions = decisions.part(1, 1)
        a = np.array([calibrator.a_ for calibrator in one.calibrators])
        b = np.array([calibrator.b_ for calibrator in one.calibrators])
        logits = steps.each(Op.SUB, steps.each(Op.MUL, decisions, -a), b)
        found.append(_one_by_one(steps, logits))
    total = found[0]
    for more in found[1:]:
        total = steps.each(Op.ADD, total, more)
    steps.raw_out = None
    return steps.each(Op.DIV, total, float(len(found)))


_SCORERS: dict[str, Callable[[Any, Steps, Columns], Columns]] = {
    **dict.fromkeys((*_REGRESSORS, *_DECIDERS), _linear),
    **dict.fromkeys(_EXP, _exp),
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV"), _logistic),
    "SGDClassifier": _sgd,
    "LinearDiscriminantAnalysis": _discriminant,
    "GaussianNB": _naive,
    **dict.fromkeys(("MLPClassifier", "MLPRegressor"), _perceptron),
    **dict.fromkeys(("SVR", "NuSVR", "OneClassSVM"), _vector_regressor),
    **dict.fromkeys(("SVC", "NuSVC"), _vector_classifier),
    "CalibratedClassifierCV": _calibrated,
}
