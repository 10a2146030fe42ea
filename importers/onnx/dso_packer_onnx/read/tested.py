"""The extent that the condition of a branch compares with a number, as in ``n == 1``.

PyTorch writes it for `squeeze` of an open axis: the branch removes the axis, which has one element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes

KEY = "tested"  # in `ir.Value.meta`: of a condition that a body captures


class Tested(NamedTuple):
    """An extent that is a number where a condition is true."""

    sizes: tuple[int, ...]  # of the extent, for each sample
    number: int
    is_equal: bool  # False if it is the number where the condition is false


def put_tested(inner: ir.Value, outer: ir.Value, passes: Passes) -> None:
    """Note for the input of a body what its outer value tests."""
    found = _tested(outer, passes)
    if found is not None:
        inner.meta[KEY] = found


def tested_extent(condition: ir.Value | None, passes: Passes, *, equal: bool) -> Tested | None:
    """Return the extent that is a number in each call in which a condition is `equal`."""
    found = None if condition is None else _tested(condition, passes)
    return found if found is not None and found.is_equal == equal else None


def _tested(value: ir.Value | None, passes: Passes) -> Tested | None:
    is_equal = True
    while value is not None and (node := value.producer()) is not None:
        if node.op_type == "Equal" and not node.domain:
            return _compared(node, passes, is_equal)
        if node.op_type not in ("Cast", "Identity", "Not", "Squeeze") or node.domain:
            return None
        is_equal ^= node.op_type == "Not"
        value = node.inputs[0]
    found: Tested | None = None if value is None else value.meta.get(KEY)
    return found and found._replace(is_equal=found.is_equal == is_equal)


def _compared(node: ir.Node, passes: Passes, is_equal: bool) -> Tested | None:
    extents: list[tuple[int, ...]] = []
    numbers: list[tuple[int, ...]] = []
    for value in node.inputs:
        found = [one.constants.get(value) for one in passes.all]
        arrays = [one for one in found if one is not None and one.size == 1]
        if len(arrays) < len(found) or any(one.dtype.kind != "i" for one in arrays):
            return None
        sizes = tuple(int(one.item()) for one in arrays)
        (extents if value in passes.open.elements else numbers).append(sizes)
    if len(numbers) != 1:
        return None
    return Tested(extents[0], numbers[0][0], is_equal)
