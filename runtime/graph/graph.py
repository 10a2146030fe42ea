"""Graph: operators in the order in which they run, and the arrays between them; no format."""

from __future__ import annotations

from .._core import tensor_nbytes
from ..error import near_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..tensors.dtype import DTypeCode

# The executor's own functions: the output is the input in another shape, or on another device.
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
        What it calls; None for an input.
    inputs : tuple of int
        The entries that it reads.
    outputs : range
        The entries that it writes.
    flatten : bool
        Whether the function sees arrays of one dimension.
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


class Entry:
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
        Entries of the same one share their memory.
    device_type : int or None
        A DLDeviceType; None where the graph leaves it open.
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
        Each behind those that it reads.
    entries : list of Entry
        The arrays, by index.
    inputs : dict of str to int
        The inputs' entries by name, in the order of their indices.
    outputs : list of int
        The outputs' entries.
    """

    def __init__(
        self, nodes: list[Node], entries: list[Entry], inputs: dict[str, int], outputs: list[int]
    ) -> None:
        self.nodes = nodes
        self.entries = entries
        self.inputs = inputs
        self.outputs = outputs

    def input_name(self, key: str | int) -> str:
        """The name of an input that is given by name or index.

        Raises
        ------
        KeyError, IndexError
            There is no such input.
        """
        if isinstance(key, int):
            return list(self.inputs)[_checked_index("input", key, len(self.inputs))]
        if key not in self.inputs:
            raise KeyError(f"no input {key!r}{near_names(key, list(self.inputs))}")
        return key

    def output(self, index: int) -> int:
        """The entry of an output.

        Raises
        ------
        IndexError
            There is no such output.
        """
        return self.outputs[_checked_index("output", index, len(self.outputs))]

    def node_index(self, key: str | int) -> int:
        """The index of a node that is given by name or index.

        Raises
        ------
        KeyError, IndexError
            There is no such node.
        """
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
    """The size; -1 if it cannot be addressed, which an extent of 0 does not hide."""
    try:
        nbytes = tensor_nbytes(shape, dtype)
    except ValueError:
        return -1
    return nbytes if nbytes < MAX_NBYTES else -1
