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

    from ..graph_executor import GraphExecutor
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
    """A graph of operators with its parameters; its imports have the operators.

    Parameters
    ----------
    graph_json : str
        TVM's graph JSON.
    params : mapping of str to Tensor or buffer
        The parameters by name; viewed, not copied.
    module_name : str
        The model's name.

    Notes
    -----
    ``factory[module_name](*devices)``, which is its entry, makes a `GraphExecutor`; its parameters
    are those of the factory, else the `weights` of its imports. The graph is checked then, before
    anything is allocated.
    """

    type_key = "GraphExecutorFactory"

    def __init__(
        self, graph_json: str, params: Mapping[str, Any], module_name: str = "default"
    ) -> None:
        super().__init__(params, module_name)
        self.graph_json = graph_json

    def create(self, *devices: Any) -> GraphExecutor:
        """Make an executor.

        Parameters
        ----------
        *devices : Device
            Where the graph's arrays are; the CPU by default.

        Returns
        -------
        GraphExecutor
            With the parameters set, as far as the tree has them.

        Raises
        ------
        BlobFormatError
            Graph or parameters are malformed, or do not fit each other.
        FunctionNotFoundError
            The imports lack operators; names them.
        DeviceError
            A device is not to be had.
        """
        from ..graph_executor import GraphExecutor, check_params
        from ..graph_json import parse_graph

        where = f"{self.type_key} {self.module_name!r}"
        graph = parse_graph(self.graph_json, where=where)
        weights = self.weights
        found = {name: weights[name] for name in graph.inputs if name in weights}
        params = check_params(graph, {**found, **self.params}, where)
        executor = GraphExecutor(graph, self._imports, devices)
        executor.set_params(params)
        return executor

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find what makes executors."""
        return self.create if name == self.module_name else None

    def function_names(self) -> list[str]:
        """The model's name."""
        return [self.module_name]

    @property
    def own_entry_name(self) -> str:
        """The model's name."""
        return self.module_name

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
