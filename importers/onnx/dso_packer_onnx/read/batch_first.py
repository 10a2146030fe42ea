"""The rule for the symbolic extent, which holds once the rewrites are done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.error import shown

from .words import name_of_node, refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir


def check_batch_first(model: ir.Model) -> None:
    """Check that the symbolic extent of each value is its first one alone.

    This holds for the inputs of a model, but other values may have it elsewhere, as transposed rows
    do, until rewrites remove them. Raises ExportError: names a node whose output breaks the rule.
    """
    symbols = {extent for value in model.graph.inputs for extent in _extents(value)}
    for node in model.graph:
        for value in node.outputs:
            for axis, extent in enumerate(_extents(value)):
                if isinstance(extent, int) or (axis == 0 and extent in symbols):
                    continue
                text = (
                    f"{name_of_node(node)}: output {shown(value.name)} is "
                    f"{shape_text(_extents(value))}, expected the symbolic extent as the "
                    "first one alone; export several input_shapes instead"
                )
                raise refusal(str(model.meta.get("source", "model")), text)


def _extents(value: ir.Value) -> list[int | str | None]:
    dims = value.shape if value.shape is not None else ()
    return [extent if isinstance(extent, int) else extent.value for extent in dims]
