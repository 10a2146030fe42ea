"""TVM's graph JSON: operators in the order in which they run, and the arrays between them.

    nodes         one per operator or input, each after the nodes that it reads:
                  {"op": "null", "name": ..., "inputs": []}                        an input
                  {"op": "tvm_op", "name": ..., "inputs": [[node, output, version], ...],
                   "attrs": {"func_name", "num_inputs", "num_outputs", "flatten_data"}}
    arg_nodes     the inputs' nodes, in the order of their indices
    heads         the outputs: [node, output, version]
    node_row_ptr  the first entry of each node's outputs; at the end the number of entries
    attrs         per entry: "shape" list_shape, "dltype" list_str, "storage_id" list_int, and
                  optionally "device_index" list_int (DLDeviceType) and "storage_scope" list_str

An entry is one array. Entries with one storage_id share their memory. The executor implements the
functions ``__nop`` (the output is the input in another shape) and ``__copy`` (to another device).
Other attributes are ignored. (TVM, graph_executor.h)
"""

from __future__ import annotations

from ..error import BlobFormatError, shown
from ..serial.strict_json import parse_json
from ..tensors.dtype import string_to_dtype
from .graph import COPY, MAX_NBYTES, MAX_NDIM, NOP, DataEntry, Graph, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..tensors.dtype import DTypeCode

MAX_INT32 = (1 << 31) - 1


def parse_graph(text: str, *, where: str = "graph") -> Graph:
    """Parse TVM's graph JSON and check it; no array is allocated.

    In the result indices are in range, nodes follow the nodes that they read, and sizes can be
    addressed. Raises BlobFormatError, which names the graph as `where`, and the node.
    """
    try:
        fields = parse_json(text)
        if not isinstance(fields, dict):
            raise _wrong("the whole", fields, "an object")
        nodes = _read_nodes(fields)
        entries = _read_entries(fields, nodes[-1].outputs.stop if nodes else 0, nodes)
        _check_storage(entries, nodes)
        _check_own_functions(entries, nodes)
        return Graph(nodes, entries, _read_inputs(fields, nodes), _read_outputs(fields, nodes))
    except ValueError as error:
        raise BlobFormatError(f"{where}: {error}") from None


def _wrong(where: str, found: object, expected: str) -> ValueError:
    return ValueError(f"{where}, expected {expected}, found {shown(found)}")


# ---- Fields. type() instead of isinstance: true and false are not numbers.


def _list(fields: dict[str, Any], key: str, where: str = "") -> list[Any]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise _wrong(f"{where}{key}", value, "a list")
    return value


def _text(fields: dict[str, Any], key: str, where: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise _wrong(f"{where}: {key}", value, "text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _wrong(
                f"{where}: {key}", value, "Unicode, without half a surrogate pair"
            ) from None
    return value


def _is_index(value: object, stop: int) -> bool:
    return type(value) is int and 0 <= value < stop


def _count(attrs: dict[str, Any], key: str, default: int, where: str) -> int:
    """An attribute of an operator: TVM writes its numbers as text."""
    value = attrs.get(key, default)
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 10:
        value = int(value)
    if not _is_index(value, MAX_INT32):
        raise _wrong(f"{where}: {key}", value, "a count")
    return value  # type: ignore[no-any-return]


# ---- Nodes


def _read_nodes(fields: dict[str, Any]) -> list[Node]:
    infos = _list(fields, "nodes")
    row_ptr = _list(fields, "node_row_ptr")
    if len(row_ptr) != len(infos) + 1 or not _is_index(row_ptr[0], 1):
        raise _wrong("node_row_ptr", row_ptr, f"{len(infos) + 1} offsets that begin with 0")
    nodes: list[Node] = []
    for index, info in enumerate(infos):
        nodes.append(_read_node(info, index, nodes, row_ptr))
    return nodes


def _read_node(info: Any, index: int, before: list[Node], row_ptr: list[Any]) -> Node:
    if not isinstance(info, dict):
        raise _wrong(f"node {index}", info, "an object")
    name = _text(info, "name", f"node {index}")
    where = f"node {index} {shown(name)}"
    attrs = info.get("attrs", {})
    if not isinstance(attrs, dict):
        raise _wrong(f"{where}: attrs", attrs, "an object")
    if info.get("op") not in ("null", "tvm_op"):
        raise _wrong(f"{where}: op", info.get("op"), "'null' or 'tvm_op'")
    is_input = info["op"] == "null"
    inputs = _read_node_inputs(info, before, where)
    outputs = _read_node_outputs(attrs, row_ptr, index, where)
    if is_input and (inputs or len(outputs) != 1):
        raise _wrong(f"{where}: an input", info.get("inputs"), "nothing that it reads, one output")
    if len(inputs) != _count(attrs, "num_inputs", len(inputs), where):
        raise _wrong(f"{where}: num_inputs", attrs["num_inputs"], f"its {len(inputs)} inputs")
    function = None if is_input else _read_function(attrs, inputs, outputs, where)
    flatten = bool(_count(attrs, "flatten_data", 0, where))
    return Node(name, function, inputs, outputs, flatten)


def _read_function(
    attrs: dict[str, Any], inputs: tuple[int, ...], outputs: range, where: str
) -> str:
    function = _text(attrs, "func_name", where)
    if function in (NOP, COPY) and (len(inputs), len(outputs)) != (1, 1):
        found = f"{len(inputs)} and {len(outputs)}"
        raise _wrong(f"{where}: inputs and outputs of {function}", found, "one and one")
    return function


def _read_node_inputs(info: dict[str, Any], before: list[Node], where: str) -> tuple[int, ...]:
    inputs = info.get("inputs", [])
    if not isinstance(inputs, list):
        raise _wrong(f"{where}: inputs", inputs, "a list")
    return tuple(_entry(ref, before, f"{where}: input {i}") for i, ref in enumerate(inputs))


def _entry(ref: Any, nodes: list[Node], where: str) -> int:
    """The index of the entry that [node, output] or [node, output, version] names."""
    if not isinstance(ref, list) or len(ref) not in (2, 3):
        raise _wrong(where, ref, "[node, output, version]")
    if not _is_index(ref[0], len(nodes)):
        raise _wrong(f"{where}: node", ref[0], f"one of the {len(nodes)} before it")
    outputs = nodes[ref[0]].outputs
    if not _is_index(ref[1], len(outputs)):
        raise _wrong(f"{where}: output", ref[1], f"one of {len(outputs)} of {nodes[ref[0]].name!r}")
    return outputs[ref[1]]


def _read_node_outputs(attrs: dict[str, Any], row_ptr: list[Any], index: int, where: str) -> range:
    count = _count(attrs, "num_outputs", 1, where)
    start, stop = row_ptr[index : index + 2]
    if type(stop) is not int or stop != start + count:
        raise _wrong(f"{where}: node_row_ptr", stop, f"{start + count} ({count} outputs)")
    return range(start, stop)


def _read_inputs(fields: dict[str, Any], nodes: list[Node]) -> dict[str, int]:
    inputs: dict[str, int] = {}
    for index in _list(fields, "arg_nodes"):
        if not _is_index(index, len(nodes)) or nodes[index].function is not None:
            raise _wrong("arg_nodes", index, "the index of an input")
        name = nodes[index].name
        if name in inputs:
            raise ValueError(f"arg_nodes: the input {shown(name)} occurs twice, expected once")
        inputs[name] = nodes[index].outputs.start
    if missing := [n.name for n in nodes if n.function is None and n.name not in inputs]:
        raise ValueError(f"arg_nodes: expected every input, {shown(missing)} are missing")
    return inputs


def _read_outputs(fields: dict[str, Any], nodes: list[Node]) -> list[int]:
    return [_entry(ref, nodes, f"head {i}") for i, ref in enumerate(_list(fields, "heads"))]


# ---- Entries


def _read_entries(fields: dict[str, Any], count: int, nodes: list[Node]) -> list[DataEntry]:
    attrs = fields.get("attrs")
    if not isinstance(attrs, dict):
        raise _wrong("attrs", attrs, "an object")
    shapes = _column(attrs, "shape", "list_shape", count)
    dtypes = _column(attrs, "dltype", "list_str", count)
    storage_ids = _column(attrs, "storage_id", "list_int", count)
    devices = _column(attrs, "device_index", "list_int", count) if "device_index" in attrs else None
    scopes = _column(attrs, "storage_scope", "list_str", count) if "storage_scope" in attrs else []
    if found := [scope for scope in scopes if scope not in ("", "global")]:
        raise _wrong("attrs: storage_scope", found[0], "'global'")
    known: dict[str, DTypeCode] = {}
    entries = []
    for node in nodes:
        for i in node.outputs:
            where = f"node {shown(node.name)}: output {i - node.outputs.start}"
            device = None if devices is None else _device_type(devices[i], where)
            dtype = _dtype(dtypes[i], known, where)
            storage_id = storage_ids[i]
            if not _is_index(storage_id, MAX_INT32 + 1):
                raise _wrong(f"{where}: storage_id", storage_id, "0 to 2^31 - 1")
            entry = DataEntry(_shape(shapes[i], where), dtype, storage_id, device)
            if entry.nbytes < 0:
                raise _wrong(f"{where}: shape", shapes[i], "a size that can be addressed")
            entries.append(entry)
    return entries


def _column(attrs: dict[str, Any], key: str, tag: str, count: int) -> list[Any]:
    """An attribute that has a value for each entry."""
    value = attrs.get(key)
    if not isinstance(value, list) or len(value) != 2 or value[0] != tag:
        raise _wrong(f"attrs: {key}", value, f"[{tag!r}, [...]]")
    column = value[1]
    if not isinstance(column, list) or len(column) != count:
        found = len(column) if isinstance(column, list) else column
        raise _wrong(f"attrs: {key}: number of values", found, f"{count}, one per entry")
    return column


def _shape(shape: Any, where: str) -> tuple[int, ...]:
    if (
        not isinstance(shape, list)
        or len(shape) > MAX_NDIM
        or not all(_is_index(extent, 1 << 63) for extent in shape)
    ):
        raise _wrong(f"{where}: shape", shape, f"at most {MAX_NDIM} extents of at least 0")
    return tuple(shape)


def _dtype(name: Any, known: dict[str, DTypeCode], where: str) -> DTypeCode:
    if isinstance(name, str) and name in known:
        return known[name]
    try:
        code = string_to_dtype(name) if isinstance(name, str) and len(name) < 40 else (0, 0, 0)
    except ValueError:
        code = (0, 0, 0)
    if not 1 <= code[1] <= 128 or code[2] < 1:
        raise _wrong(f"{where}: dltype", name, "a data type like 'float32'")
    return known.setdefault(name, code)


def _device_type(value: Any, where: str) -> int:
    if not _is_index(value, MAX_INT32):
        raise _wrong(f"{where}: device_index", value, "a DLDeviceType")
    return value  # type: ignore[no-any-return]


def _check_storage(entries: list[DataEntry], nodes: list[Node]) -> None:
    """Check that each storage is on one device, and that their total size can be addressed."""
    names = [node.name for node in nodes for _ in node.outputs]
    first: dict[int, int] = {}
    largest: dict[int, int] = {}
    for i, entry in enumerate(entries):
        other = first.setdefault(entry.storage_id, i)
        if entries[other].device_type != entry.device_type:
            pair = f"{shown(names[other])} and {shown(names[i])}"
            text = f"storage_id {entry.storage_id} of {pair}: device_index"
            found = [entries[other].device_type, entry.device_type]
            raise _wrong(text, found, "the same device")
        largest[entry.storage_id] = max(entry.nbytes, largest.get(entry.storage_id, 0))
    if sum(largest.values()) >= MAX_NBYTES:
        raise _wrong("attrs: shape: bytes together", sum(largest.values()), "what can be addressed")


def _check_own_functions(entries: list[DataEntry], nodes: list[Node]) -> None:
    """Check that __nop keeps its input's memory and size, and __copy its shape and data type."""
    for node in nodes:
        if node.function not in (NOP, COPY):
            continue
        source, output = entries[node.inputs[0]], entries[node.outputs[0]]
        where = f"node {shown(node.name)}: {node.function}"
        if node.function == NOP and output.storage_id != source.storage_id:
            raise _wrong(
                f"{where}: storage_id", output.storage_id, f"its input's {source.storage_id}"
            )
        if output.nbytes != source.nbytes:
            raise _wrong(f"{where}: bytes", output.nbytes, f"its input's {source.nbytes}")
        if node.function == COPY and (output.shape, output.dtype) != (source.shape, source.dtype):
            raise _wrong(f"{where}: shape", output.shape, f"its input's {source.shape}, and dltype")
