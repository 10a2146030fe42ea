"""``kind = "graph"``: a graph of operators, and the parameters that it takes."""

from __future__ import annotations

from runtime.modules.graph_executor import GraphExecutorFactory
from runtime.modules.safetensors import SafetensorsModule
from runtime.tensors.params import load_param_dict_from_file

from .table import Table


def graph_module(table: Table) -> GraphExecutorFactory:
    """Make the factory that a table describes.

    Parameters
    ----------
    table : Table
        graph: a file of graph JSON. params, optional: a params dict file, whose arrays go into the
        factory, or a safetensors file, which it imports. name: the model's, "default" by default.

    Raises
    ------
    ExportError
        A file is missing, the graph is malformed, or the parameters are not its inputs.
    """
    graph = table.file("graph", table.needed_text("graph"))
    text = _decoded(table, table.read_bytes(graph))
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


def _decoded(table: Table, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise table.error(f"byte {error.start:#x}: not UTF-8, expected JSON", "graph") from None
