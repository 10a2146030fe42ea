"""Translations of torch's higher-order operators that torch.onnx lacks, or refuses when nested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir


def translations(program: Any) -> dict[Any, Callable[..., Sequence[ir.Value]]]:
    """Return the operators of a program that are translated here, as torch.onnx.export takes them.

    ImportError means a torch whose torch.onnx has no such operators.
    """
    import torch

    operators = torch.ops.higher_order
    table = {operators.map_impl: _map, operators.while_loop: _while_loop}
    graphs = (
        one for one in program.graph_module.modules() if isinstance(one, torch.fx.GraphModule)
    )
    used = {node.target for graph in graphs for node in graph.graph.nodes}
    return {operator: made for operator, made in table.items() if operator in used}


def _map(
    body: ir.Function, entries: Sequence[ir.Value], captured: Sequence[ir.Value]
) -> Sequence[ir.Value]:
    """Translate `map` as a `scan` that carries no value."""
    from torch.onnx._internal.exporter._torchlib.ops import hop

    results: Sequence[ir.Value] = hop.higher_order_scan(body, [], entries, captured)
    return results


def _while_loop(*arguments: Any) -> Sequence[ir.Value]:
    """Translate `while_loop`, whose body may contain other higher-order operators.

    torch.onnx gives the call of its condition the version of ONNX's operators, and then does not
    inline a body that contains other calls: they have no version.
    """
    from torch.onnx._internal.exporter._torchlib.ops import hop

    results: Sequence[ir.Value] = hop.higher_order_while_loop(*arguments)
    loop = results[0].producer()
    loop.inputs[1].producer().version = None
    return results
