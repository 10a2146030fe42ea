"""Models of YDF (Yggdrasil Decision Forests), from the object or the folder of `save`.

The columns of a row are the model's input features, in their order. A category is its integer, a
boolean 0 or 1. The positive child follows if a condition is true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from packer import ExportError

from ..forest import Forest, Kind, Link, TreeLists, below
from ..pack import categories
from .expecting import expecting

# By the loss; the activation of a model does not tell the exponential function.
_LINKS = {
    **dict.fromkeys(("SQUARED_ERROR", "MEAN_AVERAGE_ERROR", "LAMBDA_MART_NDCG"), Link.IDENTITY),
    **dict.fromkeys(("LAMBDA_MART_NDCG5", "XE_NDCG_MART"), Link.IDENTITY),
    **dict.fromkeys(("BINOMIAL_LOG_LIKELIHOOD", "BINARY_FOCAL_LOSS"), Link.SIGMOID),
    "MULTINOMIAL_LOG_LIKELIHOOD": Link.SOFTMAX,
    "POISSON": Link.EXP,
}


class _Test(NamedTuple):
    """The test of a node: whether the positive child is the left one, and what it compares."""

    is_positive_left: bool
    feature: int
    threshold: float
    kind: Kind


def from_folder(path: str, where: str) -> Forest:
    """Read the folder of a saved model."""
    import ydf

    try:
        model = ydf.load_model(path)
    except (ValueError, RuntimeError) as error:
        raise ExportError(f"{where}: {error}; save the model again") from error
    return from_object(model, where)


def from_object(model: Any, where: str) -> Forest:
    """Read a trained model."""
    with expecting(where, "a model of YDF 0.12 or newer"):
        return _forest(model, where)


def _forest(model: Any, where: str) -> Forest:
    name = type(model).__name__
    if name not in ("GradientBoostedTreesModel", "RandomForestModel"):
        text = "expected gradient boosted trees, a random forest or CART"
        raise ExportError(f"{where}: {name} is not supported, {text}")
    features = model.input_features()
    trees = TreeLists(where)
    columns = _Columns(model.data_spec(), features, trees)
    is_classifier = model.task().name == "CLASSIFICATION"
    classes = [str(one) for one in model.label_classes()] if is_classifier else []
    is_boosted = name == "GradientBoostedTreesModel"
    value = _number if is_boosted or not is_classifier else _vote(model, len(classes))
    for i in range(model.num_trees()):
        _add_tree(trees, model.get_tree(i).root, columns, value, f"{where}: tree {i}")
    joined, count = trees.joined(), int(model.num_trees())
    if not is_boosted:  # YDF adds the share of each tree
        joined = joined._replace(
            value=(joined.value.astype(np.float32) / np.float32(count)).astype(np.float64)
        )
    outputs, base = joined.value.shape[1], np.zeros(joined.value.shape[1])
    objective, link = model.task().name, Link.UP_TO_ONE if is_classifier else Link.IDENTITY
    if is_boosted:
        outputs, base = int(model.num_trees_per_iteration()), model.initial_predictions()
        objective = _loss(model)
        if objective not in _LINKS:
            text = f"loss {objective}, expected one of {', '.join(_LINKS)}"
            raise ExportError(f"{where}: {text}")
        link = _LINKS[objective]
        if is_classifier and model.output_logits():
            link = Link.IDENTITY
    return Forest(
        "ydf",
        joined,
        np.arange(count) % outputs if is_boosted else np.zeros(count, np.int64),
        len(features),
        np.asarray(base, np.float64),
        "float32",
        "float32",
        link,
        feature_names=[feature.name for feature in features],
        classes=classes,
        facts={"objective": objective.lower()},
    )


def _loss(model: Any) -> str:
    """Return the name of the loss, which only the files of a model have."""
    from yggdrasil_decision_forests.model.gradient_boosted_trees import gradient_boosted_trees_pb2

    with TemporaryDirectory() as folder:
        model.save(folder + "/model")
        header = Path(folder, "model", "gradient_boosted_trees_header.pb").read_bytes()
    made = gradient_boosted_trees_pb2.Header.FromString(header)
    return str(gradient_boosted_trees_pb2.Loss.Name(made.loss))


def _number(value: Any) -> list[float]:
    return [value.value]


def _vote(model: Any, count: int) -> Callable[[Any], list[float]]:
    """Return the function of a leaf's value: of two classes only the second one has a sum."""
    is_winner = model.winner_takes_all()

    def vote(value: Any) -> list[float]:
        found = np.asarray(value.probability, np.float64)
        found = np.eye(count)[int(np.argmax(found))] if is_winner else found
        return [float(found[1])] if count == 2 else found.tolist()

    return vote


class _Columns:
    """The features by the columns of the data specification."""

    def __init__(self, spec: Any, features: Sequence[Any], trees: TreeLists) -> None:
        self._spec, self._trees = spec.columns, trees
        self._place = {feature.column_idx: i for i, feature in enumerate(features)}

    def test(self, condition: Any) -> _Test:
        """Return the test of a condition."""
        name, missing = type(condition).__name__, bool(condition.missing)
        kind = Kind.NAN_RIGHT if missing else Kind.NAN_LEFT
        if name == "NumericalHigherThanCondition":
            threshold = float(below(np.array([condition.threshold], np.float32))[0])
        elif name == "DiscretizedNumericalHigherThanCondition":
            spec = self._spec[condition.attribute].discretized_numerical
            bounds = np.array([spec.boundaries[condition.threshold_idx - 1]], np.float32)
            threshold = float(below(bounds)[0])
        elif name == "IsTrueCondition":
            threshold = 0.5
        elif name == "IsMissingInCondition":
            threshold, kind = np.inf, Kind.NAN_RIGHT
        elif name == "CategoricalIsInCondition":
            return self._categories(condition, missing)
        else:
            raise ExportError(f"{name}, expected tests of one number, category or boolean")
        return _Test(False, self._place[condition.attribute], threshold, kind)

    def _categories(self, condition: Any, missing: bool) -> _Test:
        """Return the test of a set; if unknown categories are in it, of the other ones."""
        spec = self._spec[condition.attribute]
        chosen = set(condition.mask)
        if spec.categorical.is_already_integerized:
            keys = {i: i for i in range(spec.categorical.number_of_unique_values)}
        else:
            items = spec.categorical.items.items()
            if texts := [key for key, _ in items if key != "<OOD>" and not key.isdecimal()]:
                text = f"category {texts[0]!r} of {spec.name}, expected integers; encode texts"
                raise ExportError(text)
            keys = {item.index: int(key) for key, item in items if key != "<OOD>"}
        is_left = 0 not in chosen or spec.categorical.is_already_integerized
        found = np.array([key for i, key in keys.items() if (i in chosen) == is_left], np.int64)
        self._trees.sets.append(categories(np.sort(found), spec.name))
        kind = Kind.CATEGORY_LEFT if missing == is_left else Kind.CATEGORY_RIGHT
        place = self._place[condition.attribute]
        return _Test(is_left, place, len(self._trees.sets) - 1, kind)


def _add_tree(
    trees: TreeLists, root: Any, columns: _Columns, value: Callable[[Any], list[float]], where: str
) -> None:
    """Add a tree; leaves are numbered as `predict_leaves` does, from the negative side."""
    tests: list[_Test | None] = []
    children: list[list[int]] = []  # of each node: the negative and the positive one
    values: list[Sequence[float]] = []
    stack: list[tuple[Any, list[int]]] = [(root, [])]
    while stack:
        node, siblings = stack.pop()
        siblings.append(len(tests))
        children.append([])
        if hasattr(node, "condition"):
            try:
                tests.append(columns.test(node.condition))
            except ExportError as error:
                raise ExportError(f"{where}: {error}") from error
            values.append(())
            stack += [(node.pos_child, children[-1]), (node.neg_child, children[-1])]
        else:
            tests.append(None)
            values.append(value(node.value))
    is_leaf = np.array([test is None for test in tests])
    made = [test or _Test(False, 0, 0.0, Kind.NAN_RIGHT) for test in tests]
    pairs = np.array([pair or [-1, -1] for pair in children])
    is_positive = np.array([test.is_positive_left for test in made])
    left, right = (
        np.where(is_positive == side, pairs[:, 1], pairs[:, 0]) for side in (True, False)
    )
    width = max(map(len, values))
    trees.add(
        left,
        right,
        np.array([test.feature for test in made]),
        np.array([test.threshold for test in made]),
        np.array([test.kind for test in made], np.uint8),
        np.array([[*one] or [0.0] * width for one in values]),
        np.cumsum(is_leaf) - is_leaf,
    )
