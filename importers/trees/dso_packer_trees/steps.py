"""Steps on the numbers of a row, before a forest or instead of it; and their bytes.

A row is evaluated in a workspace: the constants, the columns of the row, then the result of each
step. A step reads ranges of columns, and writes a new one (support/steps.c). All numbers are
little-endian, and each table begins at a multiple of 64 bytes:

header      `_HEADER`: the struct steps of support/steps.c
steps       {u32 op, columns, columns in, result, operands[3], 0, u64 first number}
numbers     f32 or f64: the constants, then the numbers of steps
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from packer import ExportError

from .tables import joined

_MAGIC, _VERSION = b"dsosteps", 1
# magic, version, checksum; f64, features, constants, workspace, steps, result, its columns, 0;
# numbers; the offsets of the tables.
_HEADER = struct.Struct("<8sII8I3Q")
_STEP = np.dtype([("words", "<u4", 8), ("numbers", "<u8")])
_MOST_WORK = 1 << 24  # a float32 counts them


# The operations of steps, in the order of support/steps.c, which describes the last ones.
Op = IntEnum(
    "Op",
    "ADD SUB MUL DIV POW LEAST GREATEST LESS LESS_EQUAL EQUAL IS_NAN WHERE ABS SIGN TRUNC SQRT EXP "
    "LOG LOG1P TANH LOGISTIC FLOAT32 SOFTMAX NORM_L1 NORM_L2 NORM_MOST COUPLE COPY MATMUL DISTANCE "
    "LOOKUP LOOKUP_ALL",
    start=0,
)


class Columns(NamedTuple):
    """A range of the workspace: of its constants, or of the columns after them."""

    first: int
    width: int
    is_constant: bool = False

    def part(self, first: int, width: int) -> Columns:
        """Return some of the columns."""
        return Columns(self.first + first, width, self.is_constant)


class _Step(NamedTuple):
    op: Op
    out: Columns
    num_in: int
    operands: tuple[Columns, ...]
    numbers: int


class Steps:
    """Collects the steps of a reader, in order; `out` has the scores.

    Attributes
    ----------
    row, out, raw_out : Columns
        The features; the scores, and the scores before the link.
    """

    def __init__(self, library: str, num_features: int, dtype: str = "float64") -> None:
        self.library, self.num_features, self.dtype = library, num_features, dtype
        self.row = self.out = Columns(0, num_features)
        self.raw_out: Columns | None = None
        self.feature_names: Sequence[str] = ()
        self.classes: Sequence[str] = ()
        self._count = num_features  # of the workspace without constants
        self._steps: list[_Step] = []
        self._constants: list[NDArray[Any]] = []
        self._numbers: list[NDArray[Any]] = []

    @property
    def row_dtype(self) -> str:
        """Return the type in which rows are computed."""
        return self.dtype

    @property
    def num_scores(self) -> int:
        """Return the number of columns of the result."""
        return self.out.width

    @property
    def facts(self) -> Mapping[str, str]:
        """Return facts for the metadata."""
        return {"library": self.library, "steps": str(len(self._steps))}

    def without_link(self) -> Steps:
        """Let the result be the scores before the link."""
        self.out = self.raw_out or self.out
        return self

    # ---- steps

    def run(self, op: Op, x: Columns, count: int, numbers: ArrayLike = ()) -> Columns:
        """Add a step from a range to `count` new columns."""
        return self._add(op, self._new(count), x.width, (x,), numbers)

    def constant(self, values: ArrayLike) -> Columns:
        """Return columns of the same numbers in each row."""
        array = np.asarray(values, np.float64).reshape(-1)
        self._constants.append(array)
        return Columns(sum(map(len, self._constants)) - len(array), len(array), is_constant=True)

    def each(self, op: Op, *operands: Columns | ArrayLike) -> Columns:
        """Add a step of single columns; numbers become constants, one column serves all."""
        count = max(x.width if isinstance(x, Columns) else np.size(x) for x in operands)
        columns = [self._expanded(x, count) for x in operands]
        return self._add(op, self._new(count), count, tuple(columns))

    def copy(self, x: Columns, indices: ArrayLike) -> Columns:
        """Choose columns, in any order."""
        index = np.asarray(indices, np.int64).reshape(-1)
        if len(index) == 0 or not 0 <= index.min() <= index.max() < x.width:
            raise ValueError(f"columns {index.tolist()[:8]}, expected some of 0 to {x.width - 1}")
        if (np.diff(index) == 1).all():
            return x.part(int(index[0]), len(index))
        return self.run(Op.COPY, x, len(index), index)

    def join(self, parts: Sequence[Columns]) -> Columns:
        """Put ranges one after the other."""
        if all(a.part(a.width, b.width) == b for a, b in pairwise(parts)):
            return parts[0]._replace(width=sum(part.width for part in parts))
        out = self._new(sum(part.width for part in parts))
        at = 0
        for part in parts:
            index = np.arange(part.width)
            self._add(Op.COPY, out.part(at, part.width), part.width, (part,), index)
            at += part.width
        return out

    def matmul(self, x: Columns, matrix: ArrayLike) -> Columns:
        """Multiply by a matrix ``[columns, results]``."""
        return self._product(Op.MATMUL, x, np.asarray(matrix, np.float64))

    def distance(self, x: Columns, points: ArrayLike) -> Columns:
        """Return the squares of the distances to points ``[points, columns]``."""
        return self._product(Op.DISTANCE, x, np.asarray(points, np.float64).T)

    def look_up(
        self,
        x: Columns,
        tables: Sequence[tuple[NDArray[Any], NDArray[Any]]],
        defaults: Sequence[float] | None,
    ) -> Columns:
        """Replace the keys of each column by values; without defaults other keys are errors."""
        numbers: list[NDArray[np.float64]] = []
        dtype = np.dtype(self.dtype)
        for i, (keys, values) in enumerate(tables):
            keys, first = np.unique(np.asarray(keys).astype(dtype), return_index=True)
            head = [len(keys), defaults[i] if defaults else 0.0]
            numbers.append(np.concatenate([head, keys, np.asarray(values)[first]]))
        op = Op.LOOKUP if defaults else Op.LOOKUP_ALL
        return self.run(op, x, x.width, np.concatenate(numbers))

    # ---- bytes

    def pack(self, where: str) -> bytes:
        """Return the bytes.

        Raises ExportError if the workspace is too large.
        """
        constants = sum(map(len, self._constants))
        if constants + self._count > _MOST_WORK:
            text = f"{constants + self._count} columns, expected at most {_MOST_WORK}"
            raise ExportError(f"{where}: {text}")

        def place(columns: Columns) -> int:
            return columns.first + (0 if columns.is_constant else constants)

        steps = np.zeros(len(self._steps), _STEP)
        for made, step in zip(steps, self._steps, strict=True):
            operands = [*map(place, step.operands), 0, 0][:3]
            words = [step.op, step.out.width, step.num_in, place(step.out), *operands, 0]
            made["words"], made["numbers"] = words, constants + step.numbers
        dtype = np.dtype(self.dtype).newbyteorder("<")
        parts = [np.zeros(0), *self._constants, *self._numbers]
        numbers = np.concatenate(parts).astype(dtype)
        shape = (self.num_features, constants, constants + self._count, len(steps))
        result = (place(self.out), self.out.width, 0, len(numbers))
        head = (self.dtype == "float64", *shape, *result)
        return joined(_HEADER, (_MAGIC, _VERSION), head, [steps, numbers])

    def _product(self, op: Op, x: Columns, matrix: NDArray[np.float64]) -> Columns:
        if matrix.ndim != 2 or matrix.shape[0] != x.width or not matrix.shape[1]:
            text = f"a matrix {list(matrix.shape)}, expected one of {x.width} rows"
            raise ValueError(text)
        return self.run(op, x, matrix.shape[1], matrix)

    def _expanded(self, x: Columns | ArrayLike, count: int) -> Columns:
        if isinstance(x, Columns):
            if x.width not in (1, count):
                raise ValueError(f"{x.width} columns, expected {count}")
            return x if x.width == count else self.copy(x, np.zeros(count))
        return self.constant(np.broadcast_to(np.asarray(x, np.float64).reshape(-1), count))

    def _new(self, count: int) -> Columns:
        self._count += count
        return Columns(self._count - count, count)

    def _add(
        self,
        op: Op,
        out: Columns,
        num_in: int,
        operands: tuple[Columns, ...],
        numbers: ArrayLike = (),
    ) -> Columns:
        array = np.asarray(numbers, np.float64).reshape(-1)
        self._steps.append(_Step(op, out, num_in, operands, sum(map(len, self._numbers))))
        self._numbers.append(array)
        return out
