"""Models of YDF: each loss, saved folders, and texts, which are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ydf

import packer
import runtime

_FEATURES = 4


def _columns(count: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {f"f{i}": random.normal(size=count) for i in range(_FEATURES)}
    found["f3"] = random.integers(0, 2, count).astype(bool)
    for i in range(3):
        found[f"f{i}"] = np.where(random.random(count) < 0.1, np.nan, found[f"f{i}"])
    return found


def _train(loss: Any, task: str, **options: Any) -> Any:
    made = _columns(600, 1)
    known = np.nan_to_num(made["f0"]) + made["f3"]
    groups = {"group": np.arange(600) // 10} if task == "RANKING" else {}
    labels = {"CLASSIFICATION": known > 0.5, "RANKING": np.clip(known * 2, 0, 4).astype(int)}
    label = labels.get(task, np.abs(known))
    learner = ydf.GradientBoostedTreesLearner(
        label="y",
        task=getattr(ydf.Task, task),
        num_trees=12,
        ranking_group="group" if groups else None,
        **({"loss": loss} if loss else {}),
        **options,
    )
    return learner.train({**made, **groups, "y": label}, verbose=0)


def _scores(source: Any, folder: Path) -> Any:
    given = _columns(3000, 7)
    rows = np.stack([given[f"f{i}"] for i in range(_FEATURES)], axis=1).astype(np.float32)
    path = packer.export_library(packer.from_trees(source), folder / "score.so")
    return np.asarray(runtime.load(path)["predict"](rows)), given


@pytest.mark.parametrize(
    ("loss", "task"),
    [
        ("SQUARED_ERROR", "REGRESSION"),
        ("MEAN_AVERAGE_ERROR", "REGRESSION"),
        ("POISSON", "REGRESSION"),
        ("BINOMIAL_LOG_LIKELIHOOD", "CLASSIFICATION"),
        ("BINARY_FOCAL_LOSS", "CLASSIFICATION"),
        ("LAMBDA_MART_NDCG", "RANKING"),
        ("XE_NDCG_MART", "RANKING"),
    ],
)
def test_losses(loss: str, task: str, tmp_path: Path) -> None:
    """Each has the scores of YDF, bit by bit, with missing values and a boolean."""
    model = _train(loss, task)
    scores, given = _scores(model, tmp_path)
    groups = {"group": np.zeros(3000, int)} if task == "RANKING" else {}
    np.testing.assert_array_equal(scores, model.predict({**given, **groups}))


def test_a_saved_folder(tmp_path: Path) -> None:
    """From Python and the command line; another folder is refused."""
    model = _train("", "REGRESSION")
    model.save(str(tmp_path / "model"))
    scores, given = _scores(tmp_path / "model", tmp_path)
    np.testing.assert_array_equal(scores, model.predict(given))
    command = [sys.executable, "-m", "packer", "export", "cli.so", "--trees", "model"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    row = runtime.empty((_FEATURES,), "float32")
    row.numpy()[:] = 0.25
    both = [runtime.load(tmp_path / name)["predict"](row) for name in ("cli.so", "score.so")]
    assert float(both[0].numpy()) == float(both[1].numpy())
    (tmp_path / "empty").mkdir()
    with pytest.raises(packer.ExportError, match="empty: .*save the model again"):
        packer.from_trees(tmp_path / "empty")


@pytest.mark.parametrize("activation", ["IDENTITY", "SIGMOID"])
def test_a_custom_loss(activation: str, tmp_path: Path) -> None:
    """A model has the name of another loss, but another activation."""
    loss = ydf.BinaryClassificationLoss(
        activation=getattr(ydf.Activation, activation),
        initial_predictions=lambda labels, weights: np.float32(0.5),
        loss=lambda labels, predictions, weights: np.float32(0),
        gradient_and_hessian=lambda labels, predictions: (
            np.clip(labels - predictions, -1, 1).astype(np.float32),
            np.ones_like(predictions),
        ),
    )
    model = _train(loss, "CLASSIFICATION")
    scores, given = _scores(model, tmp_path)
    np.testing.assert_array_equal(scores, model.predict(given))


def test_texts_and_other_models_are_refused() -> None:
    """Categories that are texts, and forests that find anomalies."""
    made = _columns(600, 1)
    made["f0"] = np.where(made["f1"] > 0, "red", "blue")
    learner = ydf.GradientBoostedTreesLearner(label="y", task=ydf.Task.REGRESSION, num_trees=3)
    model = learner.train({**made, "y": (made["f0"] == "red") * 2.0}, verbose=0)
    with pytest.raises(packer.ExportError, match="category '(red|blue)' of f0, expected integers"):
        packer.from_trees(model)
    anomalies = ydf.IsolationForestLearner(num_trees=3).train(_columns(99, 1), verbose=0)
    with pytest.raises(packer.ExportError, match="IsolationForestModel is not supported"):
        packer.from_trees(anomalies)
