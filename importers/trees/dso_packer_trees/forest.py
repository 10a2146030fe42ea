"""A forest of decision trees, as readers make it and `pack` stores it.

Trees are joined: a node has one index in all arrays, and the nodes of a tree are a range. A node
tests ``x <= threshold`` or whether a category is in a set; if so, the left child follows. Readers
turn each library's test into this one, so that no later part knows a library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer import ExportError


class Kind(IntEnum):
    """The kind of a slot: how a value is changed before the test (support/forest.h)."""

    NAN_RIGHT = 0  # a missing value goes right
    NAN_LEFT = 1
    ZERO_RIGHT = 2  # zero is missing, too (LightGBM)
    ZERO_LEFT = 3
    NAN_ZERO = 4  # a missing value is 0 (LightGBM)
    CATEGORY_RIGHT = 5  # a category; a missing value is in no set
    CATEGORY_LEFT = 6  # a missing value is in each set
    TRUNCATED_RIGHT = 7  # as 5, but -0.5 is category 0 (LightGBM)
    EXACT_RIGHT = 8  # as 5, but 5.5 is in no set (ONNX)


class Link(IntEnum):
    """The function that makes scores of the sums (support/link.h)."""

    IDENTITY = 0
    SIGMOID = 1
    SOFTMAX = 2
    EXP = 3
    CLASS = 4  # the index of the greatest sum
    STEP = 5  # 1 if positive, else 0
    SIGNED_SQUARE = 6
    LOG1P_EXP = 7
    TWO_CLASSES = 8  # of the sigmoid: 1 - p and p
    ISOLATION = 9  # parameter - 2 ** -x
    COMPLEMENT = 10  # 1 - x and x
    UP_TO_ONE = 11  # a rounded sum of shares


class Linear(NamedTuple):
    """The functions of leaves: constant + sum of coefficient * x, for each node."""

    constant: NDArray[np.float64]
    counts: NDArray[np.int64]  # of each node's terms, which follow each other
    features: NDArray[np.int64]
    coefficients: NDArray[np.float64]


class Trees(NamedTuple):
    """The nodes of all trees; arrays of one element for each node, but for `begins` and `sets`."""

    begins: NDArray[np.int64]  # the first node of each tree, its root; and the number of nodes
    left: NDArray[np.int64]  # the child's index in the tree; -1 for a leaf
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    # Of a category, the index of its set in `sets`.
    threshold: NDArray[np.float64]
    kind: NDArray[np.uint8]
    value: NDArray[np.float64]  # [nodes, width]: what leaves add to the sums
    leaf_id: NDArray[np.int64]  # the library's number of a leaf
    sets: Sequence[NDArray[np.int64]] = ()
    # The values of leaves, if no x of them is missing.
    linear: Linear | None = None


class Forest(NamedTuple):
    """A model: trees, and how their leaves become scores."""

    library: str
    trees: Trees
    # The sum that each tree adds to; trees whose leaves have a value for each sum have 0.
    targets: NDArray[np.int64]
    num_features: int
    base: NDArray[np.float64]  # what is added to each sum
    row_dtype: str  # in which rows are compared: "float32" or "float64"
    dtype: str  # of values, sums and scores
    link: Link = Link.IDENTITY
    parameter: float = 1.0  # of the link
    divisor: float = 1.0  # of the sums, before the link
    is_base_last: bool = False  # True if sums begin with 0 and `base` is added at the end
    feature_names: Sequence[str] = ()
    classes: Sequence[str] = ()
    facts: Mapping[str, str] = {}  # further facts for the metadata

    @property
    def num_scores(self) -> int:
        """Return the number of scores of a row."""
        if self.link in (Link.TWO_CLASSES, Link.COMPLEMENT):
            return 2
        return 1 if self.link is Link.CLASS else len(self.base)

    def without_link(self) -> Forest:
        """Return the forest whose scores are the sums."""
        return self._replace(link=Link.IDENTITY, parameter=1.0)


class TreeLists:
    """Collects the trees of a reader, one after the other."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._parts: list[tuple[NDArray[np.generic], ...]] = []
        self.sets: list[NDArray[np.int64]] = []
        self.linear: list[Linear] = []  # of each tree, or of none

    def add(
        self,
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        feature: NDArray[np.int64],
        threshold: NDArray[np.float64],
        kind: NDArray[np.uint8],
        value: NDArray[np.float64],
        leaf_id: NDArray[np.int64] | None = None,
    ) -> None:
        """Add a tree; by default leaves are numbered as nodes.

        Raises ExportError if the arrays differ in length, or there are none.
        """
        ids = np.arange(len(left)) if leaf_id is None else leaf_id
        part = (left, right, feature, threshold, kind, value.reshape(len(value), -1), ids)
        lengths = {len(array) for array in part}
        if len(lengths) != 1 or 0 in lengths or value.size % len(value):
            text = f"arrays of {sorted(lengths)} nodes, expected one length, at least 1"
            raise ExportError(f"{self._where}: tree {len(self._parts)}: {text}")
        self._parts.append(part)

    def joined(self) -> Trees:
        """Return all trees.

        Raises ExportError if there is none.
        """
        if not self._parts:
            raise ExportError(f"{self._where}: no trees, expected at least one; train the model")
        widths = {part[5].shape[1] for part in self._parts}
        if len(widths) != 1:
            text = f"leaves of {sorted(widths)} values, expected the same number in each tree"
            raise ExportError(f"{self._where}: {text}")
        begins = np.cumsum([0, *(len(part[0]) for part in self._parts)])
        arrays = [np.concatenate(arrays) for arrays in zip(*self._parts, strict=True)]
        left, right, feature, threshold, kind, value, ids = arrays
        return Trees(
            begins,
            left.astype(np.int64),
            right.astype(np.int64),
            feature.astype(np.int64),
            threshold.astype(np.float64),
            kind.astype(np.uint8),
            value.astype(np.float64),
            ids.astype(np.int64),
            self.sets,
            Linear(*map(np.concatenate, zip(*self.linear, strict=True))) if self.linear else None,
        )


def below(threshold: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return ``t`` for which ``x <= t`` is ``x < threshold``, for each `x` of this type."""
    lower: NDArray[np.floating] = np.nextafter(threshold, threshold.dtype.type(-np.inf))
    return lower.astype(np.float64)


def rounded_down(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the float32 for which ``x <= t`` is ``x <= threshold``, for each float32 `x`."""
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
    down = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > threshold, down, nearest).astype(np.float64)
