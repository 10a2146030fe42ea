"""GraphExecutor: runs a graph of operators; ``factory["default"](device)`` returns one.

    executor = runtime.load("deploy.so")["default"]()     # or (runtime.Device("cpu", 0))
    executor.set_input("data", array)                     # by name or index; a copy
    executor.set_input(data=array, mask=other)            # several
    executor.set_input_zero_copy("data", array)           # a view; the array must not change
    executor.run()
    executor.get_output(0).numpy()                        # a view: the next run writes over it

Every method is also a function of the module: ``executor["set_input"]("data", array)``,
``executor["run"]()``. One class, since TVM's GraphModule has these methods, by the same names.
"""

from __future__ import annotations

from ..abi import RUNNABLE
from ..error import PackerError, listed
from ..module import Module
from ..tensors.params import load_param_dict
from ..tensors.tensor import Tensor, empty, readable
from .binding import GraphBinding
from .graph import NOP, Graph
from .json import parse_graph
from .params import check_params, linked_params, matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .profile import Profile
    from .timing import BenchmarkResult

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
    return GraphExecutor(parse_graph(graph_json), [library], devices)


class GraphExecutor(Module):
    """A graph with its operators and its memory.

    Parameters
    ----------
    graph : Graph
        The checked graph.
    libraries : sequence of Module
        The modules that have the operators, or their imports; the first match is used.
    devices : sequence of Device
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
        self, graph: Graph, libraries: Sequence[Module], devices: Sequence[Any] = ()
    ) -> None:
        self._graph = graph
        self._binding = GraphBinding(graph, libraries, devices)
        self._unset = dict.fromkeys(graph.inputs)
        self._params: set[str] = set()
        self.set_params(linked_params(graph, libraries))

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
            inputs = {self._graph.input_name(key): value, **inputs}
        for given, array in inputs.items():
            name = self._graph.input_name(given)
            entry = self._graph.inputs[name]
            array = readable(array)
            self._binding.copy(entry, self._checked(f"set_input {name!r}", entry, array))
            self._unset.pop(name, None)

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
        name = self._graph.input_name(key)
        entry = self._graph.inputs[name]
        if not self._binding.bind(
            entry, self._checked(f"set_input_zero_copy {name!r}", entry, value)
        ):
            text = f"set_input_zero_copy {name!r}: expected memory {_FITNESS}; set_input copies"
            raise ValueError(text)
        self._unset.pop(name, None)

    def get_input(self, key: str | int) -> Tensor:
        """Return an input's array: a view, not a copy.

        Raises
        ------
        KeyError, IndexError
            There is no such input.
        """
        return self._binding.arrays[self._graph.inputs[self._graph.input_name(key)]]

    def _checked(self, what: str, entry: int, array: Any) -> Tensor:
        return matching(what, self._graph.entries[entry], array)

    def get_num_inputs(self) -> int:
        """Return the number of inputs, parameters included."""
        return len(self._graph.inputs)

    def get_input_index(self, name: str) -> int:
        """Return an input's index, or -1."""
        known = self._graph.find_input(name)
        return -1 if known is None else list(self._graph.inputs).index(known)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Return shapes and data types by name, of the inputs that are not parameters."""
        arrays = {n: self.get_input(n) for n in self._graph.inputs if n not in self._params}
        shapes = {name: array.shape for name, array in arrays.items()}
        return shapes, {name: array.dtype for name, array in arrays.items()}

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
        for name, array in check_params(self._graph, params, where).items():
            entry = self._graph.inputs[name]
            if not self._binding.bind(entry, array):
                self._binding.copy(entry, array)
            self._params.add(name)
            self._unset.pop(name, None)

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
        if self._unset:
            names = listed(list(self._unset))
            raise PackerError(f"inputs of the graph that are not set: {names}; use set_input")
        self._binding.sequence.run()

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        return len(self._graph.outputs)

    def get_output_index(self, name: str) -> int:
        """Return the index of the output that a node of this name computes, or -1."""
        entries = {e for node in self._graph.nodes if node.name == name for e in node.outputs}
        return next((i for i, e in enumerate(self._graph.outputs) if e in entries), -1)

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
        entry = self._graph.output(index)
        if out is None:
            return self._binding.arrays[entry]
        target = self._checked(f"get_output {index}: out", entry, out)
        return target.copy_from(self._binding.arrays[entry])

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
        entry = self._graph.output(index)
        array = self._checked(f"set_output_zero_copy {index}", entry, value)
        if self._binding.is_view(entry) or entry in self._graph.inputs.values():
            raise ValueError(
                f"set_output_zero_copy {index}: the output shares another array's memory"
            )
        if array.readonly or not self._binding.bind(entry, array):
            raise ValueError(f"set_output_zero_copy {index}: expected memory {_FITNESS}")

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
        index = self._graph.node_index(node)
        entry = self._graph.nodes[index].outputs[0]
        self._binding.sequence.run(self._binding.stops[index])
        found = self._binding.arrays[entry]
        if out is None:
            return empty(found.shape, found.dtype_code).copy_from(found)
        return self._checked(f"debug_get_output {node!r}: out", entry, out).copy_from(found)

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
        seconds = self._binding.sequence.time(number)
        called = [n for n in self._graph.nodes if n.function not in (None, NOP)]
        return Profile(
            OperatorTime(node.name, str(node.function), took)
            for node, took in zip(called, seconds, strict=True)
        )

    def time_evaluator(
        self, name: str, *, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0.0
    ) -> Callable[..., BenchmarkResult]:
        """Do as `Module.time_evaluator`; a call ends when the devices have finished."""
        from .timing import time_evaluator

        function, devices = self[name], self._binding.devices

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


_FITNESS = "aligned to 64 bytes for operators of TVM, writable where one writes"
