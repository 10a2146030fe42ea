"""Damaged models and forests are refused in words: no crash, no wrong tree."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .models import FEATURES, Case, rows
from .pipelines import PIPELINES

MUTANTS = 3000
HEADER_CHECKSUM = slice(12, 16)


@pytest.mark.parametrize("kind", ["bins", "numbers"])
def test_mutants_of_a_forest(
    kind: str, library: Callable[[Case], Path], request: pytest.FixtureRequest
) -> None:
    """Random bytes of the tables are changed: an error, or scores; the C code reads no more."""
    model = runtime.load(library(request.getfixturevalue(kind)))
    outcomes = mutate(model, MUTANTS, seed=1)
    assert outcomes["refused"] > MUTANTS / 10
    assert sum(outcomes.values()) == MUTANTS


@pytest.mark.parametrize("name", ["ordinal", "svr"])
def test_mutants_of_steps(name: str, tmp_path: Path) -> None:
    """The same for the steps of pipelines."""
    module = packer.from_trees(PIPELINES[name]().model)
    model = runtime.load(packer.export_library(module, tmp_path / "score.so"))
    outcomes = mutate(model, MUTANTS, seed=2)
    assert outcomes["refused"] > MUTANTS / 10
    assert sum(outcomes.values()) == MUTANTS


def mutate(model: Any, count: int, seed: int) -> dict[str, int]:
    """Call the C function with changed tables; return how many were refused and evaluated."""
    random = np.random.default_rng(seed)
    name = next(iter(model.weights))
    function = {"forest": "trees_predict", "steps": "trees_transform"}[name]
    original = np.asarray(model.weights[name])
    forest = runtime.empty((len(original),), "uint8")
    data, given = forest.numpy(), rows(20, 1, extreme=True)
    shape = (20, *model.outputs[0].shape[1:])
    result = runtime.empty(shape, model.outputs[0].dtype)
    outcomes = {"refused": 0, "evaluated": 0}
    for number in range(count):
        data[:] = original
        # Half of the changes are in the header and the tables that follow it.
        most = len(data) if number % 2 else 512
        for at in random.integers(0, most, random.integers(1, 4)):
            data[at] = random.integers(0, 256)
        # The checks of a forest are skipped for one of the same address and checksum.
        data[HEADER_CHECKSUM] = np.frombuffer(np.int32(number).tobytes(), np.uint8)
        try:
            model[function](forest, given, result)
            outcomes["evaluated"] += 1
        except (ValueError, TypeError):
            outcomes["refused"] += 1
    return outcomes


@pytest.mark.parametrize("suffix", ["txt", "json", "ubj"])
def test_mutants_of_model_files(suffix: str, bins: Case, numbers: Case, tmp_path: Path) -> None:
    """Cut, and with changed bytes: an ExportError, or a module."""
    path = tmp_path / f"model.{suffix}"
    (numbers if suffix == "txt" else bins).model.save_model(path)
    whole = path.read_bytes()
    random = np.random.default_rng(3)
    refused = 0
    for number in range(150):
        data = bytearray(whole)
        if number % 3 == 0:
            del data[random.integers(0, len(data)) :]
        else:
            for at in random.integers(0, len(data), 3):
                data[at] = random.integers(0, 256) if number % 2 else b"0123456789-["[at % 12]
        path.write_bytes(data)
        try:
            packer.from_trees(path)
        except packer.ExportError as error:
            refused += 1
            assert "model" in str(error)
    assert refused >= 50


def _set(*keys: Any) -> Callable[[Any], None]:
    *path, value = keys

    def change(learner: Any) -> None:
        for key in path[:-1]:
            learner = learner[key]
        learner[path[-1]] = value

    return change


_TREE = ("gradient_booster", "model", "trees", 1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_set(*_TREE, "left_children", 0, 0), "a node has two parents"),
        (_set(*_TREE, "left_children", 0, 2), "a node has two parents"),
        (_set(*_TREE, "right_children", 0, 99999), "tree 1: node 0: a child out of range"),
        (_set(*_TREE, "right_children", 0, -1), "tree 1: node 0: a child out of range"),
        (_set(*_TREE, "split_indices", 0, 12), "tree 1: node 0: a feature out of range 0 to 11"),
        (_set(*_TREE, "split_conditions", 0, float("nan")), "threshold -inf or NaN"),
        (_set(*_TREE, "split_conditions", [1.0]), "tree 1: arrays of"),
        (_set("gradient_booster", "model", "tree_info", 1, 5), "an output out of range 0 to 0"),
        (_set("gradient_booster", "model", "trees", []), "no trees, expected at least one"),
        (_set("gradient_booster", "name", "gblinear"), "expected 'gbtree' or 'dart'"),
        (_set("objective", "name", "mine"), "objective 'mine', expected one of"),
        (_set("learner_model_param", "num_feature", str(1 << 40)), "features, expected 1 to"),
        (_set("learner_model_param", "num_class", str(1 << 40)), "outputs, expected at most 65536"),
        (_set("learner_model_param", "base_score", "x"), "expected the keys of XGBoost"),
    ],
)
def test_crafted_models(change: Any, text: str, bins: Case, tmp_path: Path) -> None:
    """Each refusal names the tree and the node."""
    document = copy.deepcopy(json.loads(bins.model.save_raw("json")))
    change(document["learner"])
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(packer.ExportError, match=text):
        packer.from_trees(path)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("is_linear=0", "is_linear=1", "num_features has 0 numbers, expected 15"),
        ("objective=regression", "objective=mine", "objective 'mine', expected one of"),
        ("end of trees", "end of tree", "the file is cut"),
        ("num_leaves=15", "num_leaves=16", "leaf_value has 15 numbers, expected 16"),
        (
            "num_leaves=15",
            f"num_leaves={1 << 31}",
            "leaf_value has 15 numbers, expected 2147483648",
        ),
        ("left_child=1", "left_child=-99", "leaf 98 out of range 0 to 14"),
        ("max_feature_idx=11", "max_feature_idx=x", "max_feature_idx, expected an integer"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "expected all trees of each"),
        ("cat_boundaries=0", "cat_boundaries=1", "cat_boundaries, expected ascending numbers"),
    ],
)
def test_crafted_texts(old: str, new: str, text: str, numbers: Case, tmp_path: Path) -> None:
    """Each refusal says what was expected."""
    whole = numbers.model.model_to_string()
    assert old in whole
    path = tmp_path / "model.txt"
    path.write_text(whole.replace(old, new, 1))
    with pytest.raises(packer.ExportError, match=text):
        packer.from_trees(path)


def test_other_sources_are_refused(tmp_path: Path) -> None:
    """A missing file, another file, another object, a model that is not fitted or supported."""
    from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier

    other = tmp_path / "other.txt"
    other.write_text("no model")
    several = RandomForestClassifier(2).fit(rows(9), rows(9)[:, :2].astype(int))
    for source, text in (
        (tmp_path / "none.ubj", "No such file"),
        (other, "found a file that begins with b'no model'"),
        ([1], r"found \[1\]"),
        (RandomForestClassifier(), "is not fitted; call fit first"),
        (AdaBoostClassifier(), "AdaBoostClassifier is not supported, expected a forest"),
        (several, "a classifier of 2 outputs, expected 1"),
    ):
        with pytest.raises(packer.ExportError, match=text):
            packer.from_trees(source)
    assert several.n_features_in_ == FEATURES
