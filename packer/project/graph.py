"""``kind = "graph"``: a graph of operators with its parameters."""

from __future__ import annotations

from runtime.modules.graph_executor import GraphExecutorFactory
from runtime.modules.safetensors import SafetensorsModule
from runtime.tensors.params import load_param_dict_from_file

from .inputs import read_text
from .table import Table


def graph_module(table: Table) -> GraphExecutorFactory:
    """Make the factory that a table describes.

    graph: a file of graph JSON. params, optional: a params dict file, whose arrays the factory
    stores, or a safetensors file, which it imports. name: of the model; default "default".
    """
    text = read_text(table.file("graph", table.needed_text("graph")), "JSON")
    path, name = table.text("params"), table.text("name") or "default"
    params = table.file("params", path) if path is not None else None
    if params is not None and params.suffix == ".safetensors":
        factory = GraphExecutorFactory(text, {}, name)
        factory.import_module(SafetensorsModule(params))
    else:
        arrays = load_param_dict_from_file(params) if params is not None else {}
        factory = GraphExecutorFactory(text, arrays, name)
    factory.check()
    return factory
