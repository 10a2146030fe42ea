"""A graph bound once: its operators looked up, its arrays laid out, its calls made ready.

Every entry of the graph is a slot of a `CallSequence`, whose calls point to slots. Some slots are
views of another one's memory: what a ``__nop`` makes of its input, and the flat arrays that an
operator with ``flatten_data`` sees. Where an entry is bound to other memory, they move along.
"""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

from ._core import CallSequence
from .abi import DEVICE_CPU
from .error import DeviceError, FunctionNotFoundError
from .graph_json import COPY, NOP
from .strict_json import listed
from .tensors import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .graph_json import Graph
    from .module import Module

    Operators = dict[str, Callable[..., Any]]
    Call = tuple[str, Callable[..., Any] | None, tuple[int, ...]]

# TVM, kAllocAlignment: what its kernels are compiled for.
ALIGNMENT = 64
# <asm-generic/mman.h>; Python has it from 3.14 on.
_MAP_NORESERVE = 0x4000


class GraphBinding:
    """A graph with its operators and its memory.

    Parameters
    ----------
    graph : Graph
        The checked graph.
    libraries : sequence of Module
        Where the operators are looked up, their imports included; the first that has one counts.
    devices : sequence of Device
        Where the arrays are.

    Attributes
    ----------
    arrays : list of Tensor
        What each slot is at present; the entries come first.
    sequence : CallSequence
        The calls.
    stops : list of int
        By node, how many calls there are until it is done.

    Raises
    ------
    FunctionNotFoundError
        The libraries lack operators; names them.
    DeviceError
        A device is not to be had.
    """

    def __init__(self, graph: Graph, libraries: Sequence[Module], devices: Sequence[Any]) -> None:
        _check_devices(graph, devices)
        operators = _find_operators(graph, libraries)
        self._graph = graph
        self._own = _plan_memory(graph)  # what each slot is when nothing else was bound
        self._roots = list(range(len(self._own)))  # the entry whose memory a slot views
        self._views: dict[int, list[int]] = {}  # the slots that view an entry's memory
        self.stops: list[int] = []
        calls = self._make_calls(operators)
        self.arrays = list(self._own)
        self.sequence = CallSequence(self.arrays, calls)

    def bind(self, entry: int, array: Tensor) -> bool:
        """Let an entry be this very array; False if its operators need other memory."""
        slots = (entry, *self._views.get(entry, ()))
        views = [array, *(_reshaped(array, self._own[slot].shape) for slot in slots[1:])]
        pairs = list(zip(slots, views, strict=True))
        if not all(self.sequence.is_fit(slot, view) for slot, view in pairs):
            return False
        for slot, view in pairs:
            self.sequence.bind(slot, view)
            self.arrays[slot] = view
        return True

    def copy(self, entry: int, array: Tensor) -> None:
        """Copy an array into an entry's own memory."""
        if self.arrays[entry] is not self._own[entry]:
            self.bind(entry, self._own[entry])
        self._own[entry].raw[:] = array.raw

    def is_view(self, entry: int) -> bool:
        """Whether an entry lies in another one's memory, as the output of a ``__nop`` does."""
        return self._roots[entry] != entry

    def _make_calls(self, operators: Operators) -> list[Call]:
        calls: list[Call] = []
        flat: dict[int, int] = {}
        for node in self._graph.nodes:
            if node.function == NOP:
                self._view_input(node.inputs[0], node.outputs[0])
            elif node.function is not None:
                entries = (*node.inputs, *node.outputs)
                slots = [self._flat(e, flat) for e in entries] if node.flatten else entries
                function = None if node.function == COPY else operators[node.function]
                calls.append((node.name, function, tuple(slots)))
            self.stops.append(len(calls))
        return calls

    def _view_input(self, source: int, output: int) -> None:
        """A __nop's output is its input, wherever that lies, unless the plan says otherwise."""
        entries = self._graph.entries
        if entries[source].storage_id == entries[output].storage_id:
            self._add_view(self._roots[source], output)

    def _flat(self, entry: int, flat: dict[int, int]) -> int:
        """The slot that is an entry in one dimension."""
        if entry not in flat:
            own = self._own[entry]
            flat[entry] = len(self._own)
            self._own.append(_reshaped(own, (_num_elements(own.shape),)))
            self._roots.append(entry)
            self._add_view(self._roots[entry], flat[entry])
        return flat[entry]

    def _add_view(self, root: int, slot: int) -> None:
        self._roots[slot] = root
        self._views.setdefault(root, []).append(slot)


def _check_devices(graph: Graph, devices: Sequence[Any]) -> None:
    given = [device for device in devices if tuple(device) != ("cpu", 0)]
    wanted = {entry.device_type for entry in graph.entries} - {None, DEVICE_CPU}
    if given or wanted:
        text = f"graph on device {given or sorted(map(str, wanted))}, expected ('cpu', 0)"
        raise DeviceError(text)


def _find_operators(graph: Graph, libraries: Sequence[Module]) -> Operators:
    """Look each operator up once."""
    functions = (node.function for node in graph.nodes)
    wanted = dict.fromkeys(f for f in functions if f is not None and f not in (NOP, COPY))
    found: Operators = {}
    for name in wanted:
        for library in libraries:
            if name not in found and library.implements_function(name, query_imports=True):
                found[name] = library.get_function(name, query_imports=True)
    if missing := [name for name in wanted if name not in found]:
        text = f"operators of the graph that no library has: {listed(missing)}"
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


def _reshaped(array: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(array.raw, shape, array.dtype_code)


def _num_elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
