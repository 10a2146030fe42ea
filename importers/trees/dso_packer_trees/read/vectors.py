"""Support vector machines as steps, for the readers of scikit-learn and ONNX."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..steps import Columns, Op, Steps

Array = NDArray[np.float64]


class Kernel(NamedTuple):
    """A function of a row and each support vector."""

    kind: str  # linear, poly, rbf or sigmoid
    gamma: float
    coef0: float
    degree: float


def kernel_values(steps: Steps, x: Columns, vectors: Array, kernel: Kernel) -> Columns:
    """Return the kernel of a row and each of ``vectors[vectors, columns]``."""
    if kernel.kind == "rbf":
        far = steps.distance(x, vectors)
        return steps.each(Op.EXP, steps.each(Op.MUL, far, -kernel.gamma))
    found = steps.matmul(x, vectors.T)
    if kernel.kind == "linear":
        return found
    found = steps.each(Op.ADD, steps.each(Op.MUL, found, kernel.gamma), kernel.coef0)
    if kernel.kind == "sigmoid":
        return steps.each(Op.TANH, found)
    if kernel.kind != "poly":
        raise ValueError(f"kernel {kernel.kind!r}, expected linear, poly, rbf or sigmoid")
    return steps.each(Op.POW, found, kernel.degree)


def pair_values(
    steps: Steps, values: Columns, coefficients: Array, counts: NDArray[np.int64], rho: Array
) -> Columns:
    """Return the decision of each pair of classes.

    `coefficients` are ``[classes - 1, vectors]``, and `counts` the vectors of each class.
    """
    ends = np.cumsum(counts)
    pairs = list(combinations(range(len(counts)), 2))
    matrix = np.zeros((values.width, len(pairs)))
    for p, (i, j) in enumerate(pairs):
        for one, other in ((i, j - 1), (j, i)):
            part = slice(int(ends[one] - counts[one]), int(ends[one]))
            matrix[part, p] = coefficients[other, part]
    return steps.each(Op.ADD, steps.matmul(values, matrix), rho)


def probabilities(steps: Steps, pairs: Columns, a: Array, b: Array, count: int) -> Columns:
    """Return the probabilities of classes: Platt's sigmoid of each pair, and their coupling."""
    scaled = steps.each(Op.ADD, steps.each(Op.MUL, pairs, -a), -b)
    least = 1e-7
    of_pairs = steps.each(Op.GREATEST, steps.each(Op.LOGISTIC, scaled), least)
    return steps.run(Op.COUPLE, steps.each(Op.LEAST, of_pairs, 1 - least), count)


def votes(steps: Steps, pairs: Columns, count: int) -> Columns:
    """Return a score of each class: its votes, and its confidence in (-1/3, 1/3)."""
    matrix = np.zeros((pairs.width, count))
    for p, (i, j) in enumerate(combinations(range(count), 2)):
        matrix[p, [i, j]] = 1, -1
    is_second = steps.each(Op.LESS, pairs, 0.0)
    first = steps.matmul(steps.each(Op.SUB, 1.0, is_second), np.maximum(matrix, 0))
    voted = steps.each(Op.ADD, first, steps.matmul(is_second, np.maximum(-matrix, 0)))
    sums = steps.matmul(pairs, matrix)
    most = steps.each(Op.MUL, steps.each(Op.ADD, steps.each(Op.ABS, sums), 1.0), 3.0)
    return steps.each(Op.ADD, voted, steps.each(Op.DIV, sums, most))
