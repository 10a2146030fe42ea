"""Axes that are as long in all samples but not in all calls: the first 100 of an open axis.

The bodies of branches and loops have symbols for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir

    from .infer import Inference

# Operators that make an axis as long as a number says, or as the data has it.
_LIMIT = {"ConstantOfShape", "Expand", "Pad", "Range", "Reshape", "Resize", "Slice", "Tile", "TopK"}
# The input that has a number for each of the last axes.
_NUMBERS = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1, "Tile": 1}
_REST = -1  # of a Reshape: the length that is left


class LimitedAxes:
    """Such axes of values, by the samples that a model is inferred for.

    An axis of one element counts as fixed: others broadcast with it.
    """

    def __init__(self, samples: Sequence[Inference]) -> None:
        self._samples = samples
        self.of: dict[ir.Value, frozenset[int]] = {}

    def put(self, value: ir.Value, axes: Collection[int]) -> None:
        """Note which of some axes, which are open, all samples have equal."""
        sizes = self._sizes(value)
        found = frozenset(axis for axis in axes if axis in sizes and sizes[axis] > 1)
        if found:
            self.of[value] = found

    def step(self, node: ir.Node, is_open: Mapping[ir.Value, Any]) -> None:
        """Follow a node; `is_open` has the values with elements that calls may change.

        A length that no input has, as 24 of twice the first 12, follows from one that limits.
        """
        inputs = [value for value in node.inputs if value is not None]
        lengths = {self._sizes(v)[axis] for v in inputs for axis in self.of.get(v, ())}
        limits = node.op_type in _LIMIT and not node.domain
        is_decided = limits and any(value in is_open for value in inputs)
        if not lengths and not limits:
            return
        known = {size for value in inputs for size in self._sizes(value).values()} - lengths
        for value in node.outputs:
            sizes = self._sizes(value)
            fixed = self._sizes(inputs[0]) if inputs and not is_decided else {}
            chosen = self._chosen(node, value, is_open) if limits else ()
            made = [axis for axis in chosen if axis not in fixed]
            followed = [a for a, size in sizes.items() if lengths and size not in known]
            self.put(value, [*made, *followed])

    def _chosen(
        self, node: ir.Node, made: ir.Value, is_open: Mapping[ir.Value, Any]
    ) -> Iterable[int]:
        """Return the axes that an operator may limit: those whose numbers calls may change."""
        rank, index = len(self._samples[0].types[made].shape or ()), _NUMBERS.get(node.op_type)
        vector = None if index is None else node.inputs[index]
        numbers = None if vector is None else self._samples[0].constants.get(vector)
        if vector is None or numbers is None or vector not in is_open:
            return range(rank)
        first, can_change = rank - len(numbers), is_open[vector] | (numbers == _REST)
        return [first + index for index, one in enumerate(can_change) if one]

    def _sizes(self, value: ir.Value) -> dict[int, int]:
        """Return the length of each axis that all samples have equal."""
        shapes = [one.types[value].shape or () for one in self._samples if value in one.types]
        axes = enumerate(zip(*shapes, strict=False))
        return {axis: one[0] or 0 for axis, one in axes if len({*one}) == 1}
