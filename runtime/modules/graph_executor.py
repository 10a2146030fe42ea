"""Model factories: a graph with its parameters, or the parameters alone.

GraphExecutorFactory   string graph_json, then as AotExecutorFactory; alias GraphRuntimeFactory
AotExecutorFactory     u64 n, vector<string> names, n x NDArray, string module_name
"""

from __future__ import annotations

from ..abi import BINARY_SERIALIZABLE
from ..module import Module
from ..ndarray import read_arrays, read_names, write_ndarray
from ..tensors import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..stream import Reader, Writer
    from ..tensors import Tensor


class AotExecutorFactory(Module):
    """Parameters of a model that was compiled ahead of time.

    Parameters
    ----------
    params : mapping of str to Tensor or buffer
        The parameters by name; viewed, not copied.
    module_name : str
        The model's name.
    """

    type_key = "AotExecutorFactory"
    property_mask = BINARY_SERIALIZABLE

    def __init__(self, params: Mapping[str, Any], module_name: str = "default") -> None:
        self.params: dict[str, Tensor] = {name: tensor(array) for name, array in params.items()}
        self.module_name = module_name

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The parameters."""
        return self.params

    def save_to_binary(self, writer: Writer) -> None:
        """Write the parameters, then the name."""
        writer.write_u64(len(self.params))
        writer.write_vector(self.params, writer.write_string)
        for array in self.params.values():
            write_ndarray(writer, array)
        writer.write_string(self.module_name)


class GraphExecutorFactory(AotExecutorFactory):
    """A graph of operators with its parameters.

    Parameters
    ----------
    graph_json : str
        TVM's graph JSON.
    params : mapping of str to Tensor or buffer
        The parameters by name; viewed, not copied.
    module_name : str
        The model's name.
    """

    type_key = "GraphExecutorFactory"

    def __init__(
        self, graph_json: str, params: Mapping[str, Any], module_name: str = "default"
    ) -> None:
        super().__init__(params, module_name)
        self.graph_json = graph_json

    def save_to_binary(self, writer: Writer) -> None:
        """Write the graph, the parameters, then the name."""
        writer.write_string(self.graph_json)
        super().save_to_binary(writer)

    def get_source(self, fmt: str = "") -> str:
        """Return the graph JSON."""
        return self.graph_json if fmt in ("", "json") else super().get_source(fmt)


def loader(type_key: str) -> Callable[[Reader], AotExecutorFactory]:
    """Make the loader of a factory's type key."""
    return _load_aot if type_key == AotExecutorFactory.type_key else _load_graph


def _load_aot(reader: Reader) -> AotExecutorFactory:
    return AotExecutorFactory(_read_params(reader), reader.read_string())


def _load_graph(reader: Reader) -> GraphExecutorFactory:
    graph_json = reader.read_string()
    return GraphExecutorFactory(graph_json, _read_params(reader), reader.read_string())


def _read_params(reader: Reader) -> dict[str, Tensor]:
    start = reader.offset
    count = reader.read_u64()
    return read_arrays(reader, read_names(reader), count, start)
