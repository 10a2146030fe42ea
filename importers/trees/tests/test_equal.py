"""Scores and leaves equal the training library's, bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from .models import CASES, rows

# Libraries that refuse infinities, or anything but numbers.
_FINITE = ("xgboost", "sklearn-tree", "sklearn-forest", "sklearn-extra", "sklearn-isolation")


@pytest.mark.parametrize("name", CASES)
def test_scores_and_leaves_are_equal(name: str, tmp_path: Path) -> None:
    """For usual and extreme rows, many and few."""
    case = CASES[name]()
    path = packer.export_library(packer.from_trees(case.model), tmp_path / "score.so")
    library = runtime.load(path)
    given = np.concatenate([rows(2000, 3), rows(20_000, 4, extreme=True)])
    if name.startswith(_FINITE):
        given[np.isinf(given)] = 2.0
    if "categories" in name or "onehot" in name:
        given = given[: 2000 if name.startswith("xgboost") else None]
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
