"""The graph of a model: the record ``dso.graph`` of a tree, and sums over its operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.error import PackerError
from runtime.graph.model_record import GraphNode, TensorInfo, Variant
from runtime.module import preorder

if TYPE_CHECKING:
    from runtime.module import Module


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The graph of a model.

    Attributes
    ----------
    module : int
        The index of the module that carries the record.
    inputs, outputs : tuple of TensorInfo
        Of the model; a symbolic extent is its name.
    variants : tuple of Variant
        The sets of shapes, if there are several; `inputs` and the operators are for the first.
    nodes : tuple of GraphNode
        The operators, in the order of the calls.
    values : dict of str to TensorInfo
        What the operators read and write.
    operators : dict of str to int
        The number of operators of each kind, the most frequent first.
    flops : int
        Floating-point operations of a call; with a symbolic extent those for 1.
    weights_nbytes : int
        The bytes of the weights as they are stored.
    weights : dict of str to dict
        How a weight is stored that is not an array of its shape.
    folded : dict of str to str
        The weights that are not stored, each with the reason.
    """

    module: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    variants: tuple[Variant, ...]
    nodes: tuple[GraphNode, ...]
    values: dict[str, TensorInfo]
    operators: dict[str, int]
    flops: int
    weights_nbytes: int
    weights: dict[str, dict[str, Any]]
    folded: dict[str, str]


def read_graph(root: Module | None, notes: list[str]) -> GraphReport | None:
    """Return the graph of the first record in a tree; a malformed one is a note."""
    for index, module in enumerate(preorder(root) if root is not None else ()):
        try:
            record = module.own_record
            if record is None:
                continue
            stored = module.own_weights.values()
        except PackerError as error:
            notes.append(f"the graph cannot be read: {error.message}")
            return None
        return GraphReport(
            index,
            record.inputs,
            record.outputs,
            record.variants,
            record.nodes,
            record.values,
            dict(Counter(node.op for node in record.nodes).most_common()),
            sum(node.flops for node in record.nodes),
            sum(tensor.raw.nbytes for tensor in stored),
            record.weights,
            record.folded,
        )
    return None
