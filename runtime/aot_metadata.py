"""The metadata of a model that was compiled ahead of time: a C structure in its library.

    struct TVMMetadata      i64 version (1), *inputs, i64 num_inputs, *outputs, i64 num_outputs,
                            *workspace_pools, i64 num_workspace_pools,
                            *constant_pools, i64 num_constant_pools, const char *mod_name
    struct TVMTensorInfo    const char *name, const i64 *shape, i64 num_shape, DLDataType dtype

The library's function ``get_c_metadata`` returns its address. What stands there is as much the
library's word as its code is; only what an executor could not hold is refused.
(TVM, metadata_types.h)
"""

from __future__ import annotations

from struct import Struct

from ._core import call_for_address, memory_at
from .error import BlobFormatError
from .graph import Entry, Graph, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_METADATA = Struct("@qPqPqPqPqP")
_TENSOR_INFO = Struct("@PPqBBH4x")
_VERSION = 1

GET_C_METADATA = "get_c_metadata"


def read_aot_graph(get_c_metadata: Any) -> Graph:
    """Read the metadata as the graph that has one operator: the model's main function.

    Parameters
    ----------
    get_c_metadata : Function
        The library's; it is called.

    Returns
    -------
    Graph
        Inputs and outputs in the order of the function's arguments.

    Raises
    ------
    BlobFormatError
        There is no metadata of version 1, or the model wants memory pools from outside.
    """
    address = call_for_address(get_c_metadata)
    if address is None:
        raise BlobFormatError(f"{GET_C_METADATA}: found no metadata")
    fields = _METADATA.unpack(memory_at(address, _METADATA.size, get_c_metadata))
    version, inputs, num_inputs, outputs, num_outputs, _, num_pools, _, _, mod_name = fields
    if version != _VERSION or num_pools:
        found = f"version {version} with {num_pools} memory pools"
        raise BlobFormatError(f"{GET_C_METADATA}: expected version 1 without pools, found {found}")
    arrays = [
        *_tensors(inputs, num_inputs, get_c_metadata),
        *_tensors(outputs, num_outputs, get_c_metadata),
    ]
    entries = [Entry(shape, dtype, i, None) for i, (_, shape, dtype) in enumerate(arrays)]
    nodes = [Node(arrays[i][0], None, (), range(i, i + 1), False) for i in range(num_inputs)]
    function = f"{_text(mod_name, get_c_metadata)}___tvm_main__"
    written = range(num_inputs, len(arrays))
    nodes.append(Node(function, function, tuple(range(num_inputs)), written, False))
    names = {node.name: i for i, node in enumerate(nodes[:-1])}
    return Graph(nodes, entries, names, list(written))


def _tensors(
    address: int, count: int, owner: Any
) -> list[tuple[str, tuple[int, ...], tuple[int, int, int]]]:
    infos = memory_at(address, count * _TENSOR_INFO.size, owner)
    tensors = []
    for name, shape, ndim, code, bits, lanes in _TENSOR_INFO.iter_unpack(infos):
        extents = memory_at(shape, 8 * ndim, owner).cast("q")
        tensors.append((_text(name, owner), tuple(extents), (code, bits, lanes)))
    return tensors


def _text(address: int, owner: Any) -> str:
    return str(memory_at(address, -1, owner), "utf-8")
