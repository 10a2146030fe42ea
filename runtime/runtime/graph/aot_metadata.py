"""The metadata of a model that was compiled ahead of time: a C structure in its library.

    struct TVMMetadata      i64 version (1), *inputs, i64 num_inputs, *outputs, i64 num_outputs,
                            *workspace_pools, i64 num_workspace_pools,
                            *constant_pools, i64 num_constant_pools, const char *mod_name
    struct TVMTensorInfo    const char *name, const i64 *shape, i64 num_shape, DLDataType dtype

The library's function ``get_c_metadata`` returns its address. Pointers are trusted, as the code is.
Counts are bounded, and by the image if the arrays are in one, so that metadata of another layout is
refused. (TVM, metadata_types.h)
"""

from __future__ import annotations

from struct import Struct

from .._core import call_for_address, memory_at
from ..error import BlobFormatError
from .graph import MAX_NDIM, DataEntry, Graph, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..tensors.dtype import DTypeCode

_METADATA = Struct("@qPqPqPqPqP")
_TENSOR_INFO = Struct("@PPqBBH4x")
_VERSION = 1
_MAX_TENSORS = 10_000

GET_C_METADATA = "get_c_metadata"


def read_aot_graph(get_c_metadata: Any) -> Graph:
    """Read the metadata as the graph that has one operator: the model's main function.

    Calls the library's `get_c_metadata`. Inputs and outputs are in the order of the arguments.
    Raises BlobFormatError if there is no metadata of version 1, if the model requires external
    memory pools, or if its tensors are invalid.
    """
    address = call_for_address(get_c_metadata)
    if address is None:
        raise BlobFormatError(f"{GET_C_METADATA}: found no metadata")
    try:
        return _read_metadata(address, get_c_metadata)
    except ValueError as error:
        raise BlobFormatError(f"{GET_C_METADATA}: {error}") from None


def _read_metadata(address: int, owner: Any) -> Graph:
    fields = _METADATA.unpack(memory_at(address, _METADATA.size, owner))
    version, inputs, num_inputs, outputs, num_outputs, _, num_pools, _, _, mod_name = fields
    if version != _VERSION or num_pools:
        found = f"version {version} with {num_pools} memory pools"
        raise ValueError(f"expected version 1 without pools, found {found}")
    arrays = [
        *_tensors("inputs", inputs, num_inputs, owner),
        *_tensors("outputs", outputs, num_outputs, owner),
    ]
    entries = [_entry(i, *array) for i, array in enumerate(arrays)]
    nodes = [Node(arrays[i][0], None, (), range(i, i + 1), False) for i in range(num_inputs)]
    function = f"{_text(mod_name, owner)}___tvm_main__"
    written = range(num_inputs, len(arrays))
    nodes.append(Node(function, function, tuple(range(num_inputs)), written, False))
    names = {node.name: i for i, node in enumerate(nodes[:-1])}
    graph = Graph(nodes, entries, names, list(written))
    graph.has_c_names = True
    return graph


def _tensors(
    what: str, address: int, count: int, owner: Any
) -> list[tuple[str, tuple[int, ...], DTypeCode]]:
    infos = _array(what, address, count, _TENSOR_INFO.size, _MAX_TENSORS, owner)
    tensors = []
    for text, dims, ndim, code, bits, lanes in _TENSOR_INFO.iter_unpack(infos):
        name = _text(text, owner)
        extents = _array(f"shape of {name!r}", dims, ndim, 8, MAX_NDIM, owner).cast("q")
        tensors.append((name, tuple(extents), (code, bits, lanes)))
    return tensors


def _entry(index: int, name: str, shape: tuple[int, ...], dtype: DTypeCode) -> DataEntry:
    entry = DataEntry(shape, dtype, index, None)
    if entry.nbytes < 0 or min(shape, default=0) < 0 or not dtype[1] * dtype[2]:
        what = f"{list(shape)} of data type {dtype}"
        raise ValueError(f"{name!r}: expected a size that can be addressed, found {what}")
    return entry


def _array(what: str, address: int, count: int, size: int, most: int, owner: Any) -> memoryview:
    if not 0 <= count <= most:
        raise ValueError(f"{what}: expected 0 to {most}, found {count}")
    try:
        return memory_at(address, count * size, owner)
    except ValueError as error:
        raise ValueError(f"{what}: found {count} in {error}") from None


def _text(address: int, owner: Any) -> str:
    return str(memory_at(address, -1, owner), "utf-8")
