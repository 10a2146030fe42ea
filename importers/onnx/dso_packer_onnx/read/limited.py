"""Axes that are as long in all samples but not in all calls: the first 100 of an open axis.

The bodies of branches and loops have symbols for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

    from .infer import Inference

# Operators that make an axis as long as a number says, or as the data has it.
_LIMIT = {"ConstantOfShape", "Expand", "Pad", "Range", "Reshape", "Resize", "Slice", "Tile", "TopK"}


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

    def step(self, node: ir.Node, is_open: Mapping[ir.Value, object]) -> None:
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
            made = [axis for axis in sizes if limits and axis not in fixed]
            followed = [a for a, size in sizes.items() if lengths and size not in known]
            self.put(value, [*made, *followed])

    def _sizes(self, value: ir.Value) -> dict[int, int]:
        """Return the length of each axis that all samples have equal."""
        shapes = [one.types[value].shape or () for one in self._samples if value in one.types]
        axes = enumerate(zip(*shapes, strict=False))
        return {axis: one[0] or 0 for axis, one in axes if len({*one}) == 1}
