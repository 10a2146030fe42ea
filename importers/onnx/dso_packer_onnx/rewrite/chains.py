"""Chains of Reshape, Transpose, Slice and their like, read as views of the value at their start."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from .graph import dims, ints, optional
from .views import ONE, Factor, Size, View, joined, reshaped, sizes, whole

_LONGEST = 64  # nodes of a chain


def view_of(
    value: ir.Value, known: View | None = None, until: ir.Value | None = None
) -> View | None:
    """Return a value as a view of the first value of its chain.

    Parameters
    ----------
    value : ir.Value
    known : View, optional
        To take for the value `until`, in place of the chain before it.
    until : ir.Value, optional

    Returns
    -------
    View or None
        None if an extent is not known or is 0.
    """
    chain: list[ir.Value] = []
    while value is not until and len(chain) < _LONGEST:
        node = value.producer()
        if node is None or node.domain != "" or node.op_type not in _VIEWS:
            break
        if node.inputs[0] is None:
            break
        chain.append(value)
        value = node.inputs[0]
    view = known if value is until else whole(value)
    for made in reversed(chain):
        node = made.producer()
        following = None if view is None else _VIEWS[node.op_type](node, made, view)
        view = following if following is not None else whole(made)
    return view


def is_view(node: ir.Node | None) -> bool:
    """Return True if a node only shows its first input in another order."""
    return node is not None and node.domain == "" and node.op_type in _VIEWS


# ---- One node more ----


def _reshape(node: ir.Node, made: ir.Value, view: View) -> View | None:
    extents = sizes(made)
    return None if extents is None else reshaped(view, extents)


def _transpose(node: ir.Node, made: ir.Value, view: View) -> View | None:
    perm = node.attributes.get_ints("perm", None) or range(len(view.axes))[::-1]
    return view._replace(axes=tuple(view.axes[axis] for axis in perm))


def _identity(node: ir.Node, made: ir.Value, view: View) -> View | None:
    return view


def _gather(node: ir.Node, made: ir.Value, view: View) -> View | None:
    """Return one index of an axis: the axis goes, or remains with one element."""
    indices, rank = ints(node.inputs[1]), len(dims(node.inputs[1]) or ())
    if indices is None or len(indices) != 1 or rank > 1:
        return None
    axis = node.attributes.get_int("axis", 0) % len(view.axes)
    part = _part(view, axis, indices[0], 1, 1)
    if part is None or rank == 1:
        return part
    return part._replace(axes=part.axes[:axis] + part.axes[axis + 1 :])


def _split(node: ir.Node, made: ir.Value, view: View) -> View | None:
    axis = node.attributes.get_int("axis", 0) % len(view.axes)
    start = 0
    for output in node.outputs:
        extent = (dims(output) or (None,) * (axis + 1))[axis]
        if not isinstance(extent, int):
            return None
        if output is made:
            return _part(view, axis, start, extent, 1)
        start += extent
    return None


def _slice(node: ir.Node, made: ir.Value, view: View) -> View | None:
    starts, shape = ints(node.inputs[1]), dims(made)
    if starts is None or shape is None:
        return None
    axes = ints(optional(node, 3)) if optional(node, 3) is not None else [*range(len(starts))]
    steps = ints(optional(node, 4)) if optional(node, 4) is not None else [1] * len(starts)
    if axes is None or steps is None:
        return None
    found: View | None = view
    for axis, start, step in zip(axes, starts, steps, strict=True):
        extent = shape[axis % len(shape)]
        if found is None or step < 1 or not isinstance(extent, int):
            return None
        found = _part(found, axis % len(shape), start, extent, step)
    return found


def _part(view: View, axis: int, start: int, extent: int, step: int) -> View | None:
    """Return some elements of an axis; `start` counts from the end if it is negative."""
    factors = joined(view.axes[axis])
    if len(factors) > 1:
        return None
    old, stride = factors[0] if factors else Factor(ONE, ONE)
    if old.names or (stride.names and start):
        return None
    start = max(0, start + old.number) if start < 0 else start
    if extent < 1 or start + (extent - 1) * step >= old.number:
        return None
    axes = list(view.axes)
    axes[axis] = (Factor(Size(extent), stride.times(Size(step))),) if extent != 1 else ()
    return view._replace(axes=tuple(axes), offset=view.offset + start * stride.number)


def _expand(node: ir.Node, made: ir.Value, view: View) -> View | None:
    """Return elements again and again: their stride is 0."""
    extents = sizes(made)
    if extents is None:
        return None
    missing = len(extents) - len(view.axes)
    axes = [(), *[()] * (missing - 1), *view.axes] if missing else list(view.axes)
    for axis, extent in enumerate(extents):
        if not axes[axis] and extent != ONE:
            axes[axis] = (Factor(extent, Size(0)),)
    return view._replace(axes=tuple(axes))


_VIEWS: dict[str, Callable[[ir.Node, ir.Value, View], View | None]] = {
    "Expand": _expand,
    "Flatten": _reshape,
    "Gather": _gather,
    "Identity": _identity,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _reshape,
    "Transpose": _transpose,
    "Unsqueeze": _reshape,
}
