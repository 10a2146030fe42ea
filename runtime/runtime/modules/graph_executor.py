"""Model factories: a graph with its parameters, or the parameters alone.

GraphExecutorFactory   string graph_json, then as AotExecutorFactory; alias GraphRuntimeFactory
AotExecutorFactory     u64 n, vector<string> names, n x NDArray, string module_name
"""

from __future__ import annotations

from .._core import Graph
from ..abi import BINARY_SERIALIZABLE
from ..error import BlobFormatError
from ..module import Module
from ..tensors.ndarray import read_arrays, write_ndarray
from ..tensors.tensor import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..graph.executor import GraphExecutor
    from ..serial.stream import Reader, Writer
    from ..tensors.tensor import Tensor


class AotExecutorFactory(Module):
    """A model that was compiled ahead of time: its parameters; its imports have its code.

    Parameters
    ----------
    params : mapping of str to Tensor or buffer
        The parameters by name; viewed, not copied.
    module_name : str
        The model's name.

    Notes
    -----
    ``factory[module_name](*devices)``, which is its entry, makes a `GraphExecutor` of one operator,
    the model's main function. The library describes its inputs and outputs (``get_c_metadata``).
    """

    type_key = "AotExecutorFactory"
    property_mask = BINARY_SERIALIZABLE
    _functions: tuple[str, ...] = ("get_graph_params", "remove_params")

    def __init__(self, params: Mapping[str, Any], module_name: str = "default") -> None:
        self.params: dict[str, Tensor] = {name: tensor(array) for name, array in params.items()}
        self.module_name = module_name

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The parameters."""
        return self.params

    def create(self, *devices: Any) -> GraphExecutor:
        """Make an executor.

        Parameters
        ----------
        *devices : Device
            The devices of the arrays; the CPU by default.

        Returns
        -------
        GraphExecutor
            With those parameters set that the tree contains.

        Raises
        ------
        BlobFormatError
            Model or parameters are malformed, or do not match.
        FunctionNotFoundError
            The imports lack functions; names them.
        DeviceError
            A device is not available.
        """
        from ..graph.executor import GraphExecutor

        graph, params = self.check()
        executor = GraphExecutor(graph, self._imports, devices)
        executor.set_params(params, self._where)
        return executor

    def check(self) -> tuple[Graph, dict[str, Tensor]]:
        """Check the model, and the parameters that the tree contains.

        Returns
        -------
        Graph
            The graph to run.
        dict of str to Tensor
            Its parameters.

        Raises
        ------
        BlobFormatError
            Model or parameters are malformed, or do not match.
        FunctionNotFoundError
            The imports lack ``get_c_metadata``.
        """
        graph, weights = self._graph(), self.weights
        params = {name: weights[name] for name in graph.inputs if name in weights}
        graph.set_params(params, self._where)
        return graph, params

    @property
    def _where(self) -> str:
        return f"{self.type_key} {self.module_name!r}"

    def get_graph_params(self) -> dict[str, Tensor]:
        """Return the parameters by name; a new dict."""
        return dict(self.params)

    def remove_params(self) -> AotExecutorFactory:
        """Return a factory of the same model without parameters, to store them apart."""
        bare = self._with({})
        bare.set_imports(self._imports)
        return bare

    def _with(self, params: Mapping[str, Any]) -> AotExecutorFactory:
        return AotExecutorFactory(params, self.module_name)

    def _graph(self) -> Graph:
        """Return the metadata of the library as a graph of one operator."""
        return Graph(self["get_c_metadata"])

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find the function that makes executors, or a method by TVM's name."""
        if name == self.module_name:
            return self.create
        return getattr(self, name) if name in self._functions else None

    def function_names(self) -> list[str]:
        """The model's name, and the names of the methods."""
        return [self.module_name, *self._functions]

    @property
    def own_entry_name(self) -> str:
        """The model's name."""
        return self.module_name

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
    are in the factory, else in the `weights` of its imports. The graph is checked before memory is
    allocated.
    """

    type_key = "GraphExecutorFactory"
    _functions = (*AotExecutorFactory._functions, "get_graph_json", "debug_create")

    def __init__(
        self, graph_json: str, params: Mapping[str, Any], module_name: str = "default"
    ) -> None:
        super().__init__(params, module_name)
        self.graph_json = graph_json

    def _with(self, params: Mapping[str, Any]) -> GraphExecutorFactory:
        return GraphExecutorFactory(self.graph_json, params, self.module_name)

    def _graph(self) -> Graph:
        graph = Graph(self.graph_json, self._where)
        graph.set_params(self.params, self._where)  # checks all of them; weights may differ
        return graph

    @property
    def own_callees(self) -> frozenset[str]:
        """The functions of the operators; none of a malformed graph, which `create` refuses."""
        try:
            return Graph(self.graph_json).functions
        except BlobFormatError:
            return frozenset()

    def get_graph_json(self) -> str:
        """Return the graph JSON."""
        return self.graph_json

    def debug_create(self, module_name: str, *devices: Any) -> GraphExecutor:
        """Make an executor, by TVM's name; every executor can be debugged.

        Raises
        ------
        KeyError
            The model has another name.
        """
        if module_name != self.module_name:
            raise KeyError(f"no model {module_name!r}, only {self.module_name!r}")
        return self.create(*devices)

    def save_graph_json(self, path: str | os.PathLike[str]) -> None:
        """Write the graph JSON to a file.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.graph_json)

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Save the graph JSON."""
        if fmt not in ("", "json"):
            return super().save(path, fmt)
        return self.save_graph_json(path)

    def save_to_binary(self, writer: Writer) -> None:
        """Write the graph, the parameters, then the name."""
        writer.write_string(self.graph_json)
        super().save_to_binary(writer)

    def get_source(self, fmt: str = "") -> str:
        """Return the graph JSON."""
        return self.graph_json if fmt in ("", "json") else super().get_source(fmt)


def decode(reader: Reader, type_key: str) -> AotExecutorFactory:
    """Read the payload of a factory."""
    if type_key == AotExecutorFactory.type_key:
        return AotExecutorFactory(_read_params(reader), reader.read_name())
    return GraphExecutorFactory(reader.read_name(), _read_params(reader), reader.read_name())


def _read_params(reader: Reader) -> dict[str, Tensor]:
    reader.read_u64()
    return read_arrays(reader, reader.read_vector(reader.read_name))
