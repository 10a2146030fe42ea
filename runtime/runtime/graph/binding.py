"""A bound graph: its operators, the memory of its arrays, and its sequence of calls.

Every entry of the graph is a slot of a `CallSequence`, whose calls point to slots. Some slots are
views of the memory of an entry: the output of a ``__nop``, and the flat arrays that an operator
with ``flatten_data`` receives. If the entry is bound to other memory, its views are too.
"""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

from .._core import CallSequence, Device, tensor_view
from ..error import DeviceError, FunctionNotFoundError, OutOfMemoryError, listed
from ..tensors.tensor import Tensor, empty
from .graph import COPY, NOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..module import Module
    from .graph import Graph

    Operators = dict[str, Callable[..., Any]]
    Call = tuple[str, Callable[..., Any] | None, tuple[int, ...]]

# TVM, kAllocAlignment: its kernels are compiled for it.
ALIGNMENT = 64
# <asm-generic/mman.h>; Python has it from 3.14 on.
_MAP_NORESERVE = 0x4000
_CPU = Device("cpu")


class GraphBinding:
    """A graph with its operators and its memory; parameters and errors are `GraphExecutor`'s.

    Attributes
    ----------
    arrays : list of Tensor
        The current array of each slot; the entries are the first slots.
    sequence : CallSequence
        The calls.
    devices : list of Device
        The devices with arrays, except the CPU.
    stops : list of int
        For each node the number of calls up to its end.
    """

    def __init__(self, graph: Graph, libraries: Sequence[Module], devices: Sequence[Any]) -> None:
        places = _places(graph, devices)
        operators = _find_operators(graph, libraries)
        self._graph = graph
        self.devices = [device for device in dict.fromkeys(places) if device != _CPU]
        self._own = _plan_memory(graph, places)  # the arrays of the slots before any other is bound
        self._roots = list(range(len(self._own)))  # for each slot the entry whose memory it views
        self._views: dict[int, list[int]] = {}  # the slots that view an entry's memory
        self.stops: list[int] = []
        calls = self._make_calls(operators)
        self.arrays = list(self._own)
        self.sequence = CallSequence(self.arrays, calls)

    def bind(self, entry: int, array: Tensor) -> bool:
        """Bind an entry to an array; return False if an operator needs other memory."""
        if array.device != self._own[entry].device or not self.sequence.is_fit(entry, array):
            return False
        slots = (entry, *self._views.get(entry, ()))
        views = [array, *(_alike(array, self._own[slot]) for slot in slots[1:])]
        pairs = list(zip(slots, views, strict=True))
        if not all(self.sequence.is_fit(slot, view) for slot, view in pairs):
            return False
        for slot, view in pairs:
            self.sequence.bind(slot, view)
            self.arrays[slot] = view
        return True

    def copy(self, entry: int, array: Tensor) -> None:
        """Copy an array into the memory that was allocated for an entry."""
        if self.arrays[entry] is not self._own[entry]:
            self.bind(entry, self._own[entry])
        self._own[entry].copy_from(array)

    def is_view(self, entry: int) -> bool:
        """Return True if an entry views another one's memory, as the output of a ``__nop`` does."""
        return self._roots[entry] != entry

    def _make_calls(self, operators: Operators) -> list[Call]:
        calls: list[Call] = []
        flat: dict[int, int] = {}
        for node in self._graph.nodes:
            if node.function == NOP:
                self._add_view(self._roots[node.inputs[0]], node.outputs[0])
            elif node.function is not None:
                entries = (*node.inputs, *node.outputs)
                slots = [self._flat(e, flat) for e in entries] if node.flatten else entries
                function = None if node.function == COPY else operators[node.function]
                calls.append((node.name, function, tuple(slots)))
            self.stops.append(len(calls))
        return calls

    def _flat(self, entry: int, flat: dict[int, int]) -> int:
        """The slot that views an entry in one dimension."""
        if entry not in flat:
            own = self._own[entry]
            flat[entry] = len(self._own)
            self._own.append(tensor_view(own, (_num_elements(own.shape),), own.dtype_code))
            self._roots.append(entry)
            self._add_view(self._roots[entry], flat[entry])
        return flat[entry]

    def _add_view(self, root: int, slot: int) -> None:
        self._roots[slot] = root
        self._views.setdefault(root, []).append(slot)


def _places(graph: Graph, devices: Sequence[Any]) -> list[Device]:
    """Choose the device of each entry: the first of its kind; without a kind the first, or the CPU.

    If no device of the kind is given, TVM uses the first, whose code cannot run there. Here it is
    an error.
    """
    given = [Device(device) for device in devices] or [_CPU]
    kinds = {_CPU.device_type: _CPU} | {d.device_type: d for d in reversed(given)}
    places = []
    for entry in graph.entries:
        place = given[0] if entry.device_type is None else kinds.get(entry.device_type)
        if place is None:
            text = f"graph: found arrays of device type {entry.device_type}, expected a device of"
            raise DeviceError(f"{text} that kind, given {listed([str(d) for d in given])}")
        places.append(place)
    return places


def _find_operators(graph: Graph, libraries: Sequence[Module]) -> Operators:
    """Look up each operator once."""
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


def _plan_memory(graph: Graph, places: list[Device]) -> list[Tensor]:
    """Make an array for each entry; arrays of one storage_id begin at the same address."""
    nbytes: dict[int, int] = {}
    home: dict[int, Device] = {}
    for entry, place in zip(graph.entries, places, strict=True):
        nbytes[entry.storage_id] = max(entry.nbytes, nbytes.get(entry.storage_id, 0))
        home[entry.storage_id] = place
    host = _host_storages({i: size for i, size in nbytes.items() if home[i] == _CPU})
    device = {i: empty(nbytes[i], "uint8", home[i]) for i in nbytes if home[i] != _CPU}
    storages = host | device
    arrays: list[Tensor] = [
        tensor_view(storages[entry.storage_id], entry.shape, entry.dtype) for entry in graph.entries
    ]
    return arrays


def _host_storages(nbytes: dict[int, int]) -> dict[int, Tensor]:
    """Allocate the memory of the CPU in one piece."""
    starts, total = {}, 0
    for storage_id, size in nbytes.items():
        starts[storage_id] = total
        total += -(-size // ALIGNMENT) * ALIGNMENT
    arena = _allocate(total)
    return {
        i: Tensor(arena[at : at + nbytes[i]], (nbytes[i],), "uint8") for i, at in starts.items()
    }


def _allocate(nbytes: int) -> memoryview:
    """Map zeroed pages; pages that are never touched take no memory."""
    if nbytes == 0:
        return memoryview(bytearray())
    try:
        return memoryview(mmap(-1, nbytes, flags=MAP_PRIVATE | MAP_ANONYMOUS | _MAP_NORESERVE))
    except OSError as error:
        text = f"the graph's arrays take {nbytes} bytes: {error.strerror}; use smaller shapes"
        raise OutOfMemoryError(text) from None


def _alike(array: Tensor, model: Tensor) -> Tensor:
    """View an array with the shape and data type of another one."""
    view: Tensor = tensor_view(array, model.shape, model.dtype_code)
    return view


def _num_elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
