"""GraphExecutor: runs a graph of operators; ``factory["default"](device)`` returns one.

    executor = runtime.load("deploy.so")["default"]()     # or (runtime.Device("cpu", 0))
    executor.set_input("data", array)                     # by name or index; a copy
    executor.set_input(data=array, mask=other)            # several
    executor.set_input_zero_copy("data", array)           # a view; the array must not change
    executor.run()
    executor.get_output(0).numpy()                        # a view: the next run writes over it

Every method is also a function of the module: ``executor["set_input"]("data", array)``,
``executor["run"]()``. One class and one file, since TVM's GraphModule has these methods, by the
same names.
"""

from __future__ import annotations

from .._core import Device, Function, Graph
from ..abi import RUNNABLE
from ..module import Module
from ..tensors.params import load_param_dict
from ..tensors.tensor import Tensor, readable, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .profile import Profile
    from .timing import BenchmarkResult

# TVM, tvm_lookup_linked_param: the function of a library that returns the address of a storage_id.
_LOOKUP_LINKED_PARAM = "_lookup_linked_param"
_FUNCTIONS = (
    *("set_input", "set_input_zero_copy", "set_output_zero_copy", "run", "get_output"),
    *("get_input", "get_num_outputs", "get_num_inputs", "get_input_index", "get_output_index"),
    *("get_input_info", "load_params", "share_params", "debug_get_output", "profile"),
)


def create(graph_json: str, library: Module, *devices: Any) -> GraphExecutor:
    """Make an executor of a graph and a library that are stored apart.

    Parameters
    ----------
    graph_json : str
        TVM's graph JSON.
    library : Module
        The module that has the operators, or imports them.
    *devices : Device
        The devices of the arrays; the CPU by default.

    Returns
    -------
    GraphExecutor
        Without parameters: set them with `GraphExecutor.load_params`.

    Raises
    ------
    BlobFormatError
        The graph is malformed.
    FunctionNotFoundError
        The library lacks operators; names them.
    DeviceError
        A device is not available.
    OutOfMemoryError
        The arrays exceed the address space.
    """
    return GraphExecutor(Graph(graph_json), [library], devices)


class GraphExecutor(Module):
    """A graph with its operators and its memory.

    Parameters
    ----------
    graph : Graph
        The checked graph, which is bound here.
    libraries : iterable of Module
        The modules that have the operators, or their imports; the first match is used.
    devices : iterable of Device
        The devices of the arrays.

    Notes
    -----
    Arrays of one storage_id share memory, aligned to 64 bytes. Parameters are used without a copy,
    with two exceptions: an operator declares that it writes to one; or one is not aligned to 64
    bytes, and an operator without declaration reads it, which TVM compiled for that alignment.
    `run` releases the GIL. One executor runs in one thread at a time; several executors of one
    library may run in parallel.
    """

    type_key = "GraphExecutor"
    property_mask = RUNNABLE

    def __init__(
        self, graph: Graph, libraries: Iterable[Module], devices: Iterable[Any] = ()
    ) -> None:
        self._graph = graph
        libraries = list(libraries)
        graph.bind(lambda name: _find(libraries, name), [Device(device) for device in devices])

    # ---- inputs

    def set_input(self, key: str | int | None = None, value: Any = None, **inputs: Any) -> None:
        """Copy an array into an input, or several by keyword.

        Parameters
        ----------
        key : str or int
            The input's name or index.
        value : array
            Of the input's shape and data type.
        **inputs : array
            Further ones by name.

        Raises
        ------
        KeyError, IndexError
            There is no such input.
        ValueError
            The array is of another shape or data type.
        """
        if key is not None:
            self._graph.call("set_input", key, readable(value))
        for name, array in inputs.items():
            self._graph.call("set_input", name, readable(array))

    def set_input_zero_copy(self, key: str | int, value: Any) -> None:
        """Bind an input to an array of the caller, which the next runs read without a copy.

        Raises
        ------
        KeyError, IndexError
            There is no such input.
        ValueError
            Its shape or data type differs; it is read-only, and an operator writes to it; or it
            is not aligned to 64 bytes, and an operator that TVM compiled reads it.
        """
        self._graph.call("set_input_zero_copy", key, tensor(value))

    def get_input(self, key: str | int) -> Tensor:
        """Return an input's array: a view, not a copy.

        Raises
        ------
        KeyError, IndexError
            There is no such input.
        """
        found: Tensor = self._graph.call("get_input", key)
        return found

    def get_num_inputs(self) -> int:
        """Return the number of inputs, parameters included."""
        return len(self._graph.inputs)

    def get_input_index(self, name: str) -> int:
        """Return an input's index, or -1."""
        index: int = self._graph.call("get_input_index", name)
        return index

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Return shapes and data types by name, of the inputs that are not parameters."""
        rows = self._graph.call("get_input_info")
        return {name: shape for name, shape, _ in rows}, {name: dtype for name, _, dtype in rows}

    # ---- parameters

    def load_params(self, params: bytes | bytearray | memoryview) -> None:
        """Set parameters from the bytes of a params dict file.

        Raises
        ------
        BlobFormatError
            The bytes are not a params dict, or do not match the graph.
        """
        self.set_params(load_param_dict(params))

    def set_params(self, params: Mapping[str, Tensor], where: str = "params") -> None:
        """Set parameters by name; they are only copied if an operator needs other memory.

        Raises
        ------
        BlobFormatError
            The graph has no such input, or one of another shape or data type; none was set.
        """
        self._graph.set_params({name: tensor(array) for name, array in params.items()}, where)

    def share_params(self, other: GraphExecutor, params: bytes | bytearray | memoryview) -> None:
        """Use parameters of another executor, without a copy.

        Parameters
        ----------
        other : GraphExecutor
            The other executor; its arrays live as long as either.
        params : buffer
            A params dict file; its names are the parameters to share.

        Raises
        ------
        BlobFormatError
            The graph has no such parameter, or one of another shape or data type.
        KeyError
            The other executor has no such input.
        """
        self.set_params({name: other.get_input(name) for name in load_param_dict(params)})

    # ---- running, and outputs

    def run(self, **inputs: Any) -> None:
        """Run all operators.

        Parameters
        ----------
        **inputs : array
            Inputs to set first, as `set_input` does.

        Raises
        ------
        PackerError
            Inputs are not set; lists them.
        RuntimeError
            The executor is running already.
        """
        if inputs:
            self.set_input(**inputs)
        self._graph.call("run")

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        count: int = self._graph.call("get_num_outputs")
        return count

    def get_output_index(self, name: str) -> int:
        """Return the index of the output that a node of this name computes, or -1."""
        index: int = self._graph.call("get_output_index", name)
        return index

    def get_output(self, index: int, out: Any = None) -> Tensor:
        """Return an output.

        Parameters
        ----------
        index : int
            The index of the output.
        out : writable array, optional
            The array that it is copied to.

        Returns
        -------
        Tensor
            `out` as a Tensor; without it a view, which the next run overwrites.

        Raises
        ------
        IndexError
            There is no such output.
        ValueError
            `out` is of another shape or data type.
        """
        return self._output("get_output", index, out)

    def _output(self, function: str, key: str | int, out: Any) -> Tensor:
        given = () if out is None else (tensor(out),)
        found: Tensor = self._graph.call(function, key, *given)
        return given[0] if given else found

    def set_output_zero_copy(self, index: int, value: Any) -> None:
        """Bind an output to an array of the caller, which the next runs write.

        Raises
        ------
        IndexError
            There is no such output.
        ValueError
            Its shape or data type differs, it is read-only, it is not aligned to 64 bytes and TVM
            compiled its operator, or the output is an input.
        """
        self._graph.call("set_output_zero_copy", index, tensor(value))

    # ---- debugging

    def debug_get_output(self, node: str | int, out: Any = None) -> Tensor:
        """Run up to a node, and return a copy of its first output.

        Parameters
        ----------
        node : str or int
            The node's name or index.
        out : writable array, optional
            The array that it is copied to.

        Raises
        ------
        KeyError, IndexError
            There is no such node.
        ValueError
            `out` is of another shape or data type.
        """
        return self._output("debug_get_output", node, out)

    def profile(self, number: int = 10) -> Profile:
        """Run the graph several times, and measure each operator.

        Parameters
        ----------
        number : int
            The number of runs.

        Returns
        -------
        Profile
            Name, function and mean seconds of each operator, in order; its text is a table.

        Raises
        ------
        PackerError
            Inputs are not set.
        """
        from .profile import OperatorTime, Profile

        self.run()
        return Profile(OperatorTime(*row) for row in self._graph.time(number))

    def time_evaluator(
        self, name: str, *, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0.0
    ) -> Callable[..., BenchmarkResult]:
        """Do as `Module.time_evaluator`; a call ends when the devices have finished."""
        from .timing import time_evaluator

        function, devices = self[name], self._graph.devices

        def until_done(*args: Any) -> None:
            function(*args)
            for device in devices:
                device.sync()

        timed = until_done if devices else function
        return time_evaluator(timed, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms)

    # ---- as a module

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find one of the methods above, by name."""
        function: Callable[..., Any] | None = getattr(self, name) if name in _FUNCTIONS else None
        return function

    def function_names(self) -> list[str]:
        """The names of these methods."""
        return list(_FUNCTIONS)

    @property
    def own_entry_name(self) -> str:
        """Calling the executor runs it."""
        return "run"


def _find(libraries: list[Module], name: str) -> Callable[..., Any] | None:
    """Find an operator; or the function of linked parameters, if a library has it."""
    for library in libraries:
        if (function := library._find(name)) is not None:
            is_wanted = name != _LOOKUP_LINKED_PARAM or isinstance(function, Function)
            return function if is_wanted else None
    return None
