"""Graph: operators in the order in which they run, and the arrays between them."""

from __future__ import annotations

from .._core import tensor_nbytes
from ..error import near_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..tensors.dtype import DTypeCode

# Functions of the executor: the output is the input in another shape, or on another device.
NOP = "__nop"
COPY = "__copy"
MAX_NBYTES = 1 << 62
MAX_NDIM = 64


class Node:
    """A node of a graph.

    Attributes
    ----------
    name : str
        The node's name.
    function : str or None
        The function that it calls; None for an input.
    inputs : tuple of int
        The entries that it reads.
    outputs : range
        The entries that it writes.
    flatten : bool
        True if the function receives arrays of one dimension.
    """

    __slots__ = ("flatten", "function", "inputs", "name", "outputs")

    def __init__(
        self,
        name: str,
        function: str | None,
        inputs: tuple[int, ...],
        outputs: range,
        flatten: bool,
    ) -> None:
        self.name = name
        self.function = function
        self.inputs = inputs
        self.outputs = outputs
        self.flatten = flatten


class DataEntry:
    """An array of a graph.

    Attributes
    ----------
    shape : tuple of int
        Its extents.
    dtype : tuple of int
        DLPack's (code, bits, lanes).
    nbytes : int
        Its size.
    storage_id : int
        Entries with equal ones share their memory.
    device_type : int or None
        A DLDeviceType; None if the graph does not set it.
    """

    __slots__ = ("device_type", "dtype", "nbytes", "shape", "storage_id")

    def __init__(
        self, shape: tuple[int, ...], dtype: DTypeCode, storage_id: int, device_type: int | None
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.nbytes = _nbytes(shape, dtype)
        self.storage_id = storage_id
        self.device_type = device_type


class Graph:
    """A checked graph.

    Attributes
    ----------
    nodes : list of Node
        Each after the nodes that it reads.
    entries : list of DataEntry
        The arrays, by index.
    inputs : dict of str to int
        The inputs' entries by name, in the order of their indices.
    outputs : list of int
        The outputs' entries.
    has_c_names : bool
        True if inputs are also found by names that are not C names: ``"a.1"`` is ``"a_1"``.
    """

    has_c_names = False

    def __init__(
        self,
        nodes: list[Node],
        entries: list[DataEntry],
        inputs: dict[str, int],
        outputs: list[int],
    ) -> None:
        self.nodes = nodes
        self.entries = entries
        self.inputs = inputs
        self.outputs = outputs

    def input_name(self, key: str | int) -> str:
        """The name of an input, by name or index. Raises KeyError or IndexError."""
        if isinstance(key, int):
            return list(self.inputs)[_checked_index("input", key, len(self.inputs))]
        if (name := self.find_input(key)) is None:
            raise KeyError(f"no input {key!r}{near_names(key, list(self.inputs))}")
        return name

    def find_input(self, name: str) -> str | None:
        """Return the name of the input that a name refers to, or None."""
        if name not in self.inputs and self.has_c_names:
            kept = bytes(c if chr(c).isalnum() and c < 128 else ord("_") for c in range(256))
            name = name.encode("utf-8", "surrogateescape").translate(kept).decode("ascii")
        return name if name in self.inputs else None

    def output(self, index: int) -> int:
        """The entry of an output. Raises IndexError."""
        return self.outputs[_checked_index("output", index, len(self.outputs))]

    def node_index(self, key: str | int) -> int:
        """The index of a node, by name or index. Raises KeyError or IndexError."""
        if not isinstance(key, str):
            return _checked_index("node", key, len(self.nodes))
        names = [node.name for node in self.nodes]
        if key not in names:
            raise KeyError(f"no node {key!r}{near_names(key, names)}")
        return names.index(key)


def _checked_index(what: str, index: int, count: int) -> int:
    if not 0 <= index < count:
        raise IndexError(f"{what} {index}, expected 0 to {count - 1}")
    return index


def _nbytes(shape: tuple[int, ...], dtype: DTypeCode) -> int:
    """The size; -1 if it cannot be addressed, even if an extent is 0."""
    try:
        nbytes = tensor_nbytes(shape, dtype)
    except ValueError:
        return -1
    return nbytes if nbytes < MAX_NBYTES else -1
