"""Each node of a graph as an operator: by a fast kernel, or by generated C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..layout import DOMAIN
from .fast import lower_fast
from .generic import lower_generic

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator


def lower_nodes(graph: ir.Graph) -> list[Operator]:
    """Return the operator of each node, in the order of the graph.

    Raises ExportError if a node has no implementation; names it.
    """
    return [lower_fast(n) if n.domain == DOMAIN else lower_generic(n) for n in graph]
