"""Scores and leaves equal the training library's, bit by bit."""

from __future__ import annotations

import os
from pathlib import Path

import lightgbm
import numpy as np
import pytest
import xgboost

import packer
import runtime

from .models import CASES, rows

EXTREME = int(os.environ.get("ROWS", "20000"))
# Libraries that refuse infinities, or anything but numbers.
_FINITE = ("xgboost", "sklearn-tree", "sklearn-forest", "sklearn-extra", "sklearn-isolation")


@pytest.mark.parametrize("name", CASES)
def test_scores_and_leaves_are_equal(name: str, tmp_path: Path) -> None:
    """For usual and extreme rows, many and few."""
    case = CASES[name]()
    path = packer.export_library(packer.from_trees(case.model), tmp_path / "score.so")
    library = runtime.load(path)
    given = np.concatenate([rows(2000, 3), rows(EXTREME, 4, extreme=True)])
    if name.startswith(_FINITE):
        given[np.isinf(given)] = 2.0
    if "categories" in name or "onehot" in name:
        given = given[: 2000 if name.startswith(("xgboost", "ydf")) else None]
    if name.startswith("sklearn-boosting"):
        given = given[np.isfinite(given).all(axis=1)]
    expected = case.predict(given)
    scores = np.asarray(library["predict"](given))
    assert scores.shape == expected.shape
    assert scores.dtype == expected.dtype or name == "sklearn-tree-classes"
    if case.rounding:
        least = np.finfo(scores.dtype).eps * case.rounding
        np.testing.assert_allclose(scores, expected, rtol=least, atol=least)
    else:
        np.testing.assert_array_equal(scores, expected)
    if case.leaves:
        np.testing.assert_array_equal(np.asarray(library["leaves"](given)), case.leaves(given))
    for count in (1, 3, 5):
        np.testing.assert_array_equal(np.asarray(library["predict"](given[:count])), scores[:count])
    np.testing.assert_array_equal(np.asarray(library["predict"](given[7])), scores[7])


def test_estimators_of_the_libraries(tmp_path: Path) -> None:
    """Of LightGBM as its Booster, and of XGBoost up to its best iteration."""
    given, label = rows(400, 11), (rows(400, 11)[:, 0] > 0).astype(int)
    boosted = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=3, n_jobs=1)
    boosted.fit(given[:300], label[:300], eval_set=[(given[300:], 1 - label[300:])], verbose=False)
    assert boosted.best_iteration < 50
    light = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(given, label)
    for model in (boosted, light):
        path = packer.export_library(packer.from_trees(model), tmp_path / "score.so")
        scores = np.asarray(runtime.load(path)["predict"](given))
        np.testing.assert_array_equal(scores, model.predict_proba(given)[:, 1])
    for model in (xgboost.XGBClassifier(), lightgbm.LGBMClassifier()):
        with pytest.raises(packer.ExportError, match="need to call fit|expected a trained model"):
            packer.from_trees(model)
