"""Names for long expressions of open extents.

After a few strides an extent is a floor of a sum of floors. Such an extent gets a name, and is
calculated once in a call; operators, sizes and the plan of memory have the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .extent import Extent, identifier, symbols_of
from .extent_text import parsed
from .operator import shape_of

if TYPE_CHECKING:
    import onnx_ir as ir


def name_extents(graph: ir.Graph) -> dict[str, Extent]:
    """Name the extents of a graph that are more than sums and products of open extents.

    Returns the expression of each name, in the symbols of the inputs.
    """
    import onnx_ir as ir

    values = [value for node in graph for value in node.outputs if value.shape is not None]
    taken = [*symbols_of(extent for value in graph.inputs for extent in shape_of(value))]
    names: dict[Extent, str] = {}
    for value in values:
        shape = shape_of(value)
        for extent in shape:
            if extent not in names and isinstance(extent, str) and _is_long(extent):
                names[extent] = identifier(f"d{len(names) + 1}", taken)
                taken.append(names[extent])
        if any(extent in names for extent in shape):
            value.shape = ir.Shape([names.get(extent, extent) for extent in shape])
    return {name: extent for extent, name in names.items()}


def _is_long(extent: str) -> bool:
    import sympy

    kinds = (sympy.floor, sympy.ceiling, sympy.Min, sympy.Max, sympy.Mod)
    return bool(parsed(extent).has(*kinds))
