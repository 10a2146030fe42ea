"""A graph bound once: its operators looked up, its arrays laid out, its calls made ready.

Every entry of the graph is a slot of a `CallSequence`, whose calls point to slots. Some slots are
views of another one's memory: what a ``__nop`` makes of its input, and the flat arrays that an
operator with ``flatten_data`` sees. Where an entry is bound to other memory, they move along.
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

# TVM, kAllocAlignment: what its kernels are compiled for.
ALIGNMENT = 64
# <asm-generic/mman.h>; Python has it from 3.14 on.
_MAP_NORESERVE = 0x4000
_CPU = Device("cpu")


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
    devices : list of Device
        Where arrays are, beside the CPU.
    stops : list of int
        By node, how many calls there are until it is done.

    Raises
    ------
    FunctionNotFoundError
        The libraries lack operators; names them.
    DeviceError
        A device is not to be had.
    OutOfMemoryError, listed
        There is no address space for the arrays.
    """

    def __init__(self, graph: Graph, libraries: Sequence[Module], devices: Sequence[Any]) -> None:
        places = _places(graph, devices)
        operators = _find_operators(graph, libraries)
        self._graph = graph
        self.devices = [device for device in dict.fromkeys(places) if device != _CPU]
        self._own = _plan_memory(graph, places)  # what each slot is when nothing else was bound
        self._roots = list(range(len(self._own)))  # the entry whose memory a slot views
        self._views: dict[int, list[int]] = {}  # the slots that view an entry's memory
        self.stops: list[int] = []
        calls = self._make_calls(operators)
        self.arrays = list(self._own)
        self.sequence = CallSequence(self.arrays, calls)

    def bind(self, entry: int, array: Tensor) -> bool:
        """Let an entry be this very array; False if its operators need other memory."""
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
        """Copy an array into an entry's own memory."""
        if self.arrays[entry] is not self._own[entry]:
            self.bind(entry, self._own[entry])
        self._own[entry].copy_from(array)

    def is_view(self, entry: int) -> bool:
        """Whether an entry lies in another one's memory, as the output of a ``__nop`` does."""
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
        """The slot that is an entry in one dimension."""
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
    """The device of each entry: of those given the first of its kind, the first at all, or the CPU.

    TVM puts what was compiled for a kind that is not given on the first device; there nothing of
    it can run, so it is refused.
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


def _plan_memory(graph: Graph, places: list[Device]) -> list[Tensor]:
    """An array for each entry; all of one storage_id begin at the same address."""
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
    """Memory of the CPU: all of it in one piece."""
    starts, total = {}, 0
    for storage_id, size in nbytes.items():
        starts[storage_id] = total
        total += -(-size // ALIGNMENT) * ALIGNMENT
    pool = _allocate(total)
    return {i: Tensor(pool[at : at + nbytes[i]], (nbytes[i],), "uint8") for i, at in starts.items()}


def _allocate(nbytes: int) -> memoryview:
    """Zeroed pages; those that nothing touches, since the parameters lie elsewhere, cost none."""
    if nbytes == 0:
        return memoryview(bytearray())
    try:
        return memoryview(mmap(-1, nbytes, flags=MAP_PRIVATE | MAP_ANONYMOUS | _MAP_NORESERVE))
    except OSError as error:
        text = f"the graph's arrays take {nbytes} bytes: {error.strerror}; use smaller shapes"
        raise OutOfMemoryError(text) from None


def _alike(array: Tensor, model: Tensor) -> Tensor:
    """An array's memory as the shape and data type of another one."""
    view: Tensor = tensor_view(array, model.shape, model.dtype_code)
    return view


def _num_elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
