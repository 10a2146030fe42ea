"""MatMulNBits of ONNX Runtime, written with ONNX's operators.

Its weight, (columns, blocks, bytes) of packed integers, becomes an int8 matrix (inputs, columns)
with the scales and zeros of DequantizeLinear in blocks, before a MatMul.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from runtime.error import shown

from .words import name_of_node, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

_DOMAIN = "com.microsoft"
_NAMES = ("a", "b", "scales", "zero_points", "g_idx", "bias")


def expand_matmul_bits(model: Any, weights: dict[str, ir.TensorProtocol], source: str) -> None:
    """Replace each MatMulNBits of a ModelProto, whose large weights are in `weights`.

    Raises ExportError if its weight is not constant, has another form, or an order of inputs.
    """
    nodes = list(model.graph.node)
    if not any(_is_one(node) for node in nodes):
        return
    del model.graph.node[:]
    uses = Counter(name for node in nodes for name in node.input)
    for node in nodes:
        if _is_one(node):
            is_shared = uses[node.input[1]] > 1
            model.graph.node.extend(_expanded(model, node, weights, is_shared, source))
        else:
            model.graph.node.append(node)


def _is_one(node: Any) -> bool:
    return bool(node.op_type == "MatMulNBits" and node.domain == _DOMAIN)


def _expanded(
    model: Any, node: Any, weights: dict[str, ir.TensorProtocol], is_shared: bool, source: str
) -> list[Any]:
    import numpy as np
    import onnx

    where = name_of_node(node)
    inputs = dict(zip(_NAMES, node.input, strict=False))
    numbers = {one.name: one.i for one in node.attribute}
    bits, block = numbers.get("bits", 4), numbers.get("block_size", 0)
    inner, columns = numbers.get("K", 0), numbers.get("N", 0)
    if bits not in (4, 8) or block < 16 or block & (block - 1) or inner < 1 or columns < 1:
        text = f"bits of 4 or 8, blocks of 16 or more and a shape, found {numbers}"
        raise refusal(source, f"{where}: expected {text}")
    if inputs.get("g_idx"):
        text = "no g_idx, which orders inputs; quantise the model without it (desc_act=False)"
        raise refusal(source, f"{where}: expected {text}")
    blocks, zero = -(-inner // block), 1 << (bits - 1)

    def array(name: str, nelements: int) -> Callable[[], Any]:
        read = _reader(model, inputs[name], weights)
        if read is None or read().size != nelements:
            text = f"a constant of {nelements} elements, found {shown(inputs[name])}"
            raise refusal(source, f"{where}: {name}, expected {text}")
        return read

    packed = array("b", columns * blocks * (block * bits // 8))
    scales = array("scales", columns * blocks)

    def matrix() -> Any:
        whole = _integers(packed().reshape(columns, -1), bits)[:, :inner]
        return np.ascontiguousarray((whole.astype(np.int16) - zero).astype(np.int8).T)

    made = f"{node.output[0]}/weight"
    parts = [f"{made}.integers" if is_shared else inputs["b"], f"{made}.scales"]
    _add(model, weights, parts[0], matrix, (inner, columns), "INT8")
    factors = np.ascontiguousarray(scales().reshape(columns, blocks).T.astype(np.float32))
    _add(model, weights, parts[1], lambda: factors, factors.shape, "FLOAT")
    if inputs.get("zero_points"):
        row = -(-blocks * bits // 8)
        zeros = array("zero_points", columns * row)
        every = _integers(zeros().reshape(columns, row), bits)[:, :blocks]
        offsets = np.ascontiguousarray((every.astype(np.int16) - zero).astype(np.int8).T)
        parts.append(f"{made}.zeros")
        _add(model, weights, parts[2], lambda: offsets, offsets.shape, "INT8")
    bias = inputs.get("bias")
    output = f"{node.output[0]}/product" if bias else node.output[0]
    helper = onnx.helper.make_node
    nodes = [
        helper("DequantizeLinear", parts, [made], axis=0, block_size=block),
        helper("MatMul", [inputs["a"], made], [output], name=node.name),
    ]
    return [*nodes, helper("Add", [output, bias], [node.output[0]])] if bias else nodes


def _integers(rows: Any, bits: int) -> Any:
    """Unpack rows of bytes; of two integers in a byte the first is in the low bits."""
    import numpy as np

    rows = rows.view(np.uint8)
    return rows if bits == 8 else np.stack([rows & 15, rows >> 4], -1).reshape(len(rows), -1)


def _reader(
    model: Any, name: str, weights: dict[str, ir.TensorProtocol]
) -> Callable[[], Any] | None:
    """Return a function that reads a constant, or None for another value."""
    import onnx

    if name in weights:
        tensor = weights[name]
        return lambda: tensor.numpy()
    found = next((one for one in model.graph.initializer if one.name == name), None)
    if found is None:
        return None
    kept = onnx.TensorProto()
    kept.CopyFrom(found)
    return lambda: onnx.numpy_helper.to_array(kept)


def _add(
    model: Any,
    weights: dict[str, ir.TensorProtocol],
    name: str,
    read: Callable[[], Any],
    shape: tuple[int, ...],
    dtype: str,
) -> None:
    """Put a constant into the model, in the place of one of its name; `read` makes it."""
    import onnx
    import onnx_ir as ir

    for index, one in enumerate(model.graph.initializer):
        if one.name == name:
            del model.graph.initializer[index]
            break
    tensor = model.graph.initializer.add(name=name, dims=shape)
    tensor.data_type = getattr(onnx.TensorProto, dtype)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="taken")
    kind = ir.DataType[dtype]
    weights[name] = ir.LazyTensor(
        lambda: ir.Tensor(read(), dtype=kind, name=name), kind, ir.Shape(shape), name=name
    )
