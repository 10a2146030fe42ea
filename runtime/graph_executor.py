"""GraphExecutor: runs a graph of operators; what ``factory["default"](device)`` makes.

    executor = runtime.load("deploy.so")["default"]()     # or (runtime.Device("cpu", 0))
    executor.set_input("data", array)                     # by name or index; a copy
    executor.set_input(data=array, mask=other)            # several
    executor.set_input_zero_copy("data", array)           # the array itself; it must stay as it is
    executor.run()
    executor.get_output(0).numpy()                        # a view: the next run writes over it

Every method is a function of the module, too: ``executor["set_input"]("data", array)``,
``executor["run"]()``. The names are those of TVM's GraphModule.
"""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

from ._core import CallSequence
from .abi import DEVICE_CPU, RUNNABLE
from .dtype import dtype_to_string
from .error import BlobFormatError, DeviceError, FunctionNotFoundError, PackerError
from .graph_json import COPY, NOP, Entry, Graph, parse_graph
from .module import Module, near_names
from .ndarray import parse_params
from .tensors import Tensor, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .graph_profile import Profile

# TVM, kAllocAlignment: what its kernels are compiled for.
ALIGNMENT = 64

_FUNCTIONS = (
    *("set_input", "set_input_zero_copy", "set_output_zero_copy", "run", "get_output"),
    *("get_input", "get_num_outputs", "get_num_inputs", "get_input_index", "get_output_index"),
    *("get_input_info", "load_params", "share_params", "debug_get_output", "profile"),
)


def create(graph_json: str, library: Module, *devices: Any) -> GraphExecutor:
    """Make an executor of a graph whose parts are kept apart.

    Parameters
    ----------
    graph_json : str
        TVM's graph JSON.
    library : Module
        Where the operators are looked up, its imports included.
    *devices : Device
        Where the graph's arrays are; the CPU by default.

    Returns
    -------
    GraphExecutor
        Its parameters are to be set: `GraphExecutor.load_params`.

    Raises
    ------
    BlobFormatError
        The graph is malformed.
    FunctionNotFoundError
        The library lacks operators; names them.
    DeviceError
        A device is not to be had.
    """
    return GraphExecutor(parse_graph(graph_json), [library], devices)


class GraphExecutor(Module):
    """A graph, bound to its operators and to memory of its own.

    Parameters
    ----------
    graph : Graph
        The checked graph.
    libraries : sequence of Module
        Where the operators are looked up, their imports included; the first that has one counts.
    devices : sequence of Device
        Where the arrays are.

    Notes
    -----
    Arrays of one storage_id share memory, aligned to 64 bytes. Parameters that are so aligned are
    not copied. `run` works in the native core, without the GIL; one executor runs in one thread
    at a time, executors of one library run side by side.
    """

    type_key = "GraphExecutor"
    property_mask = RUNNABLE

    def __init__(
        self, graph: Graph, libraries: Sequence[Module], devices: Sequence[Any] = ()
    ) -> None:
        _check_devices(graph, devices)
        operators = _find_operators(graph, libraries)
        self._graph = graph
        self._own = _plan_memory(graph)  # what each entry is when nothing else was bound
        self._bound = list(self._own)
        self._aliases: dict[int, list[int]] = {}
        self._sequence = CallSequence(self._own, self._bind_calls(operators))
        self._unset = dict.fromkeys(graph.inputs)
        self._params: dict[str, None] = {}

    # ---- calls and memory

    def _bind_calls(
        self, operators: dict[str, Callable[..., Any]]
    ) -> list[tuple[str, Callable[..., Any] | None, tuple[int, ...]]]:
        """The calls in order; the slots of their arguments are entries, and flat views of them."""
        graph, roots = self._graph, list(range(len(self._graph.entries)))
        flat: dict[int, int] = {}
        calls: list[tuple[str, Callable[..., Any] | None, tuple[int, ...]]] = []
        self._stops: dict[int, int] = {}  # by node: how many calls there are until it is done
        for index, node in enumerate(graph.nodes):
            if node.function == NOP:
                self._alias(roots, node.inputs[0], node.outputs[0])
            elif node.function is not None:
                slots: Sequence[int] = (*node.inputs, *node.outputs)
                if node.flatten:
                    slots = [self._flat(entry, flat, roots) for entry in slots]
                function = None if node.function == COPY else operators[node.function]
                calls.append((node.name, function, tuple(slots)))
            self._stops[index] = len(calls)
        return calls

    def _alias(self, roots: list[int], source: int, entry: int) -> None:
        """The output of a __nop is its input in another shape, wherever that lies."""
        entries = self._graph.entries
        if entries[source].storage_id == entries[entry].storage_id:
            roots[entry] = roots[source]
            self._aliases.setdefault(roots[source], []).append(entry)

    def _flat(self, entry: int, flat: dict[int, int], roots: list[int]) -> int:
        """The slot that is an entry without its dimensions."""
        if entry not in flat:
            flat[entry] = len(self._own)
            own = self._own[entry]
            view = _reshaped(own, (_num_elements(own),))
            self._own.append(view)
            self._bound.append(view)
            self._aliases.setdefault(roots[entry], []).append(flat[entry])
        return flat[entry]

    def _bind(self, entry: int, array: Tensor) -> bool:
        """Let an entry be this very array; False if its operators need other memory."""
        slots = (entry, *self._aliases.get(entry, ()))
        views = [array, *(_reshaped(array, self._own[slot].shape) for slot in slots[1:])]
        pairs = list(zip(slots, views, strict=True))
        if not all(self._sequence.is_fit(slot, view) for slot, view in pairs):
            return False
        for slot, view in pairs:
            self._sequence.bind(slot, view)
            self._bound[slot] = view
        return True

    def _copy(self, entry: int, array: Tensor) -> None:
        """Copy an array into the entry's own memory."""
        if self._bound[entry] is not self._own[entry]:
            for slot in (entry, *self._aliases.get(entry, ())):
                self._sequence.bind(slot, self._own[slot])
                self._bound[slot] = self._own[slot]
        self._own[entry].raw[:] = array.raw

    def _checked(self, what: str, entry: int, array: Any) -> Tensor:
        return _matching(what, self._graph.entries[entry], array)

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
            inputs = {self._input_name(key): value, **inputs}
        for name, array in inputs.items():
            entry = self._graph.inputs[self._input_name(name)]
            self._copy(entry, self._checked(f"set_input {name!r}", entry, array))
            self._unset.pop(name, None)

    def set_input_zero_copy(self, key: str | int, value: Any) -> None:
        """Let an input be an array of the caller's, which the next runs read where it lies.

        Raises
        ------
        KeyError, IndexError
            There is no such input.
        ValueError
            The array is of another shape or data type, is not aligned to 64 bytes, or is
            read-only and an operator writes to it.
        """
        name = self._input_name(key)
        entry = self._graph.inputs[name]
        if not self._bind(entry, self._checked(f"set_input_zero_copy {name!r}", entry, value)):
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
        return self._bound[self._graph.inputs[self._input_name(key)]]

    def get_num_inputs(self) -> int:
        """Return the number of inputs, parameters included."""
        return len(self._graph.inputs)

    def get_input_index(self, name: str) -> int:
        """Return an input's index, or -1."""
        return next((i for i, known in enumerate(self._graph.inputs) if known == name), -1)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Return shapes and data types by name, of the inputs that are no parameters."""
        arrays = {
            name: self._own[entry]
            for name, entry in self._graph.inputs.items()
            if name not in self._params
        }
        shapes = {name: array.shape for name, array in arrays.items()}
        return shapes, {name: array.dtype for name, array in arrays.items()}

    def _input_name(self, key: str | int) -> str:
        inputs = self._graph.inputs
        if isinstance(key, int):
            if not 0 <= key < len(inputs):
                raise IndexError(f"input {key}, expected 0 to {len(inputs) - 1}")
            return list(inputs)[key]
        if key not in inputs:
            raise KeyError(f"no input {key!r}{near_names(key, list(inputs))}")
        return key

    # ---- parameters

    def load_params(self, params: bytes | bytearray | memoryview) -> None:
        """Set parameters from the bytes of a params dict file.

        Raises
        ------
        BlobFormatError
            The bytes are no params dict, or hold what the graph does not have.
        """
        self.set_params(parse_params(params))

    def set_params(self, params: Mapping[str, Tensor], where: str = "params") -> None:
        """Set parameters by name; those that are aligned to 64 bytes are not copied.

        Raises
        ------
        BlobFormatError
            The graph has no such input, or of another shape or data type; nothing was set.
        """
        for name, array in check_params(self._graph, params, where).items():
            entry = self._graph.inputs[name]
            if not self._bind(entry, array):
                self._copy(entry, array)
            self._params[name] = None
            self._unset.pop(name, None)

    def share_params(self, other: GraphExecutor, params: bytes | bytearray | memoryview) -> None:
        """Take over parameters from another executor, without a copy.

        Parameters
        ----------
        other : GraphExecutor
            Whose arrays are used; they stay as long as either executor.
        params : buffer
            A params dict file with the names of those to share.

        Raises
        ------
        BlobFormatError
            A parameter is not of this graph, or of another shape or data type.
        KeyError
            The other has no such input.
        """
        self.set_params({name: other.get_input(name) for name in parse_params(params)})

    # ---- running, and outputs

    def run(self) -> None:
        """Run all operators.

        Raises
        ------
        PackerError
            Inputs were never set; lists them.
        RuntimeError
            The executor is running already.
        """
        if self._unset:
            names = _named(list(self._unset))
            raise PackerError(f"inputs of the graph that were never set: {names}; set_input does")
        self._sequence.run()

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
            Which.
        out : writable array, optional
            Where it is copied to.

        Returns
        -------
        Tensor
            `out` as a Tensor; without it a view, which the next run writes over.

        Raises
        ------
        IndexError
            There is no such output.
        ValueError
            `out` is of another shape or data type.
        """
        entry = self._output(index)
        if out is None:
            return self._bound[entry]
        target = self._checked(f"get_output {index}: out", entry, out)
        target.raw[:] = self._bound[entry].raw
        return target

    def set_output_zero_copy(self, index: int, value: Any) -> None:
        """Let an output be an array of the caller's, which the next runs write.

        Raises
        ------
        IndexError
            There is no such output.
        ValueError
            The array is of another shape or data type, is read-only or not aligned to 64 bytes,
            or the output is an input.
        """
        entry = self._output(index)
        array = self._checked(f"set_output_zero_copy {index}", entry, value)
        is_alias = any(entry in aliases for aliases in self._aliases.values())
        if is_alias or entry in self._graph.inputs.values():
            raise ValueError(f"set_output_zero_copy {index}: the output is another array's memory")
        if array.readonly or not self._bind(entry, array):
            raise ValueError(f"set_output_zero_copy {index}: expected memory {_FITNESS}")

    def _output(self, index: int) -> int:
        outputs = self._graph.outputs
        if not 0 <= index < len(outputs):
            raise IndexError(f"output {index}, expected 0 to {len(outputs) - 1}")
        return outputs[index]

    # ---- looking inside

    def debug_get_output(self, node: str | int, out: Any = None) -> Tensor:
        """Run up to a node, and return a copy of its first output.

        Parameters
        ----------
        node : str or int
            The node's name or index.
        out : writable array, optional
            Where it is copied to.

        Raises
        ------
        KeyError, IndexError
            There is no such node.
        ValueError
            `out` is of another shape or data type.
        """
        index = self._node(node)
        entry = self._graph.nodes[index].outputs[0]
        self._sequence.run(self._stops[index])
        found = self._bound[entry]
        if out is None:
            return Tensor(bytes(found.raw), found.shape, found.dtype_code)
        target = self._checked(f"debug_get_output {node!r}: out", entry, out)
        target.raw[:] = found.raw
        return target

    def _node(self, key: str | int) -> int:
        names = [node.name for node in self._graph.nodes]
        if isinstance(key, str):
            if key not in names:
                raise KeyError(f"no node {key!r}{near_names(key, names)}")
            return names.index(key)
        if not 0 <= key < len(names):
            raise IndexError(f"node {key}, expected 0 to {len(names) - 1}")
        return key

    def profile(self, number: int = 10) -> Profile:
        """Run the graph some times, and measure each operator.

        Parameters
        ----------
        number : int
            How often.

        Returns
        -------
        Profile
            Name, function and mean seconds of each operator, in order; its text is a table.

        Raises
        ------
        PackerError
            Inputs were never set.
        """
        from .graph_profile import OperatorTime, Profile

        self.run()
        seconds = self._sequence.time(number)
        called = [n for n in self._graph.nodes if n.function not in (None, NOP)]
        return Profile(
            OperatorTime(node.name, str(node.function), took)
            for node, took in zip(called, seconds, strict=True)
        )

    # ---- as a module

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find one of the methods above, by name."""
        function: Callable[..., Any] | None = getattr(self, name) if name in _FUNCTIONS else None
        return function

    def function_names(self) -> list[str]:
        """The names of the methods that are functions."""
        return list(_FUNCTIONS)

    @property
    def own_entry_name(self) -> str:
        """Calling the executor runs it."""
        return "run"


def check_params(
    graph: Graph, params: Mapping[str, Tensor], where: str = "params"
) -> dict[str, Tensor]:
    """Compare parameters with a graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    params : mapping of str to Tensor or buffer
        Parameters by name; not necessarily all.
    where : str
        What they are, for messages.

    Returns
    -------
    dict of str to Tensor
        The same.

    Raises
    ------
    BlobFormatError
        The graph has no such input, or of another shape or data type; names them.
    """
    inputs = graph.inputs
    if extra := [name for name in params if name not in inputs]:
        raise BlobFormatError(f"{where}: {_named(extra)} are no inputs of the graph")
    try:
        return {n: _matching(repr(n), graph.entries[inputs[n]], a) for n, a in params.items()}
    except ValueError as error:
        raise BlobFormatError(f"{where}: {error}") from None


# TVM wrote a bool as uint1 until DLPack had one.
_LEGACY_BOOL, _BOOL = (1, 1, 1), (6, 8, 1)
_FITNESS = "that is aligned to 64 bytes, and writable where it is written"


def _check_devices(graph: Graph, devices: Sequence[Any]) -> None:
    given = [device for device in devices if tuple(device) != ("cpu", 0)]
    wanted = {entry.device_type for entry in graph.entries} - {None, DEVICE_CPU}
    if given or wanted:
        text = f"graph on device {given or sorted(map(str, wanted))}, expected ('cpu', 0)"
        raise DeviceError(text)


def _find_operators(graph: Graph, libraries: Sequence[Module]) -> dict[str, Callable[..., Any]]:
    """Look each operator up once."""
    wanted = dict.fromkeys(n.function for n in graph.nodes if n.function not in (None, NOP, COPY))
    found: dict[str, Callable[..., Any]] = {}
    for name in wanted:
        assert name is not None
        for library in libraries:
            if name not in found and library.implements_function(name, query_imports=True):
                found[name] = library.get_function(name, query_imports=True)
    if missing := [str(name) for name in wanted if name not in found]:
        text = f"operators of the graph that no library has: {_named(missing)}"
        raise FunctionNotFoundError(text, name=missing[0], module="GraphExecutor")
    return found


def _plan_memory(graph: Graph) -> list[Tensor]:
    """An array for each entry; all of one storage_id begin at the same address."""
    nbytes: dict[int, int] = {}
    for entry in graph.entries:
        nbytes[entry.storage_id] = max(entry.nbytes, nbytes.get(entry.storage_id, 0))
    starts, total = {}, 0
    for storage_id, size in nbytes.items():
        starts[storage_id] = total
        total += -(-size // ALIGNMENT) * ALIGNMENT
    pool = _allocate(total)
    return [
        Tensor(pool[(at := starts[e.storage_id]) : at + e.nbytes], e.shape, e.dtype)
        for e in graph.entries
    ]


def _allocate(nbytes: int) -> memoryview:
    """Zeroed pages; those that nothing touches, since the parameters lie elsewhere, cost none."""
    if nbytes == 0:
        return memoryview(bytearray())
    try:
        return memoryview(mmap(-1, nbytes, flags=MAP_PRIVATE | MAP_ANONYMOUS | _MAP_NORESERVE))
    except OSError as error:
        raise MemoryError(f"the graph's arrays take {nbytes} bytes: {error.strerror}") from None


# <asm-generic/mman.h>; Python has it from 3.14 on.
_MAP_NORESERVE = 0x4000


def _reshaped(array: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(array.raw, shape, array.dtype_code)


def _num_elements(array: Tensor) -> int:
    count = 1
    for extent in array.shape:
        count *= extent
    return count


def _matching(what: str, entry: Entry, array: Any) -> Tensor:
    """The array as a Tensor, if it is of the entry's kind."""
    given = tensor(array)
    if given.dtype_code == _LEGACY_BOOL and entry.dtype == _BOOL:
        given = Tensor(given.raw, given.shape, _BOOL)
    if given.shape == entry.shape and given.dtype_code == entry.dtype:
        return given
    wanted = f"{dtype_to_string(entry.dtype)}{list(entry.shape)}"
    raise ValueError(f"{what}: expected {wanted}, found {given.dtype}{list(given.shape)}")


def _named(names: list[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(repr, names[:8])) + more
