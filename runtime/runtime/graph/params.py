"""The parameters of a graph: compared with it, or found in a library that they are linked into."""

from __future__ import annotations

from .._core import Function, call_for_address, memory_at
from ..error import BlobFormatError, listed
from ..tensors.dtype import dtype_to_string
from ..tensors.tensor import Tensor, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..module import Module
    from .graph import DataEntry, Graph

# TVM, tvm_lookup_linked_param: the function of a library that returns the address of a storage_id.
LOOKUP_LINKED_PARAM = "_lookup_linked_param"
# TVM wrote a bool as uint1 until DLPack had one.
_LEGACY_BOOL, _BOOL = (1, 1, 1), (6, 8, 1)


def check_params(
    graph: Graph, params: Mapping[str, Any], where: str = "params"
) -> dict[str, Tensor]:
    """Return parameters as Tensors; they need not be all of the graph.

    Raises BlobFormatError, which names them, if the graph has no such inputs, or inputs of another
    shape or data type.
    """
    inputs = graph.inputs
    if extra := [name for name in params if name not in inputs]:
        raise BlobFormatError(f"{where}: {listed(extra)} are not inputs of the graph")
    try:
        return {n: matching(repr(n), graph.entries[inputs[n]], a) for n, a in params.items()}
    except ValueError as error:
        raise BlobFormatError(f"{where}: {error}") from None


def matching(what: str, entry: DataEntry, array: Any) -> Tensor:
    """Return an array as a Tensor; ValueError if its shape or data type is not that of an entry."""
    given = tensor(array)
    if given.dtype_code == _LEGACY_BOOL and entry.dtype == _BOOL:
        given = Tensor(given.raw, given.shape, _BOOL)
    if given.shape == entry.shape and given.dtype_code == entry.dtype:
        return given
    wanted = f"{dtype_to_string(entry.dtype)}{list(entry.shape)}"
    raise ValueError(f"{what}: expected {wanted}, found {given.dtype}{list(given.shape)}")


def linked_params(graph: Graph, libraries: Sequence[Module]) -> dict[str, Tensor]:
    """Find the parameters that were linked into a library."""
    params: dict[str, Tensor] = {}
    look_up = _linked_param_function(libraries)
    for name, index in graph.inputs.items() if look_up is not None else ():
        entry = graph.entries[index]
        address = call_for_address(look_up, entry.storage_id)
        if address is not None:
            data = _linked_bytes(name, address, entry, look_up)
            params[name] = Tensor(data, entry.shape, entry.dtype)
    return params


def _linked_bytes(name: str, address: int, entry: DataEntry, owner: Any) -> memoryview:
    try:
        return memory_at(address, entry.nbytes, owner)
    except ValueError as error:
        raise BlobFormatError(f"{LOOKUP_LINKED_PARAM}: {name!r}: found {error}") from None


def _linked_param_function(libraries: Sequence[Module]) -> Function | None:
    for library in libraries:
        if library.implements_function(LOOKUP_LINKED_PARAM, query_imports=True):
            function = library.get_function(LOOKUP_LINKED_PARAM, query_imports=True)
            return function if isinstance(function, Function) else None
    return None
