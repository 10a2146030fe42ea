"""Data types that not every C compiler has, stored as the runtime stores them.

bfloat16 is computed as float32. Integers of 2 and 4 bits and float4 are packed in memory, the first
element in the low bits; the code has a byte for each. Others are as they are in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import c_type, dtype_name, element_bits
from ..operator import elements

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx
    import onnx_ir as ir

    from ..operator import Shape

_ALIGNMENT = 64
_FLOAT, _BFLOAT16 = 1, 16  # TensorProto.DataType
HELPERS = """\
static inline void dso_widen(const uint16_t *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const uint32_t bits = (uint32_t)from[i] << 16;
    memcpy(to + i, &bits, 4);
  }
}

/* To the nearest, ties to even. */
static inline void dso_round_to_bfloat16(const float *from, uint16_t *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, from + i, 4);
    if (from[i] != from[i]) to[i] = (uint16_t)(bits >> 16 | 0x40);
    else to[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

static inline void dso_unpack(const uint8_t *from, int8_t *to, int64_t count, int bits, int sign) {
  const int lanes = 8 / bits, mask = (1 << bits) - 1, top = 1 << (bits - 1);
  for (int64_t i = 0; i < count; i++) {
    const int value = from[i / lanes] >> (int)(i % lanes) * bits & mask;
    to[i] = (int8_t)(sign ? (value ^ top) - top : value);
  }
}

static inline void dso_pack(const int8_t *from, uint8_t *to, int64_t count, int bits) {
  const int lanes = 8 / bits, mask = (1 << bits) - 1;
  memset(to, 0, (size_t)((count + lanes - 1) / lanes));
  for (int64_t i = 0; i < count; i++)
    to[i / lanes] = (uint8_t)(to[i / lanes] | (from[i] & mask) << (int)(i % lanes) * bits);
}

"""


class Storage(NamedTuple):
    """How one parameter goes between memory and the code."""

    argument: str  # what the code gets, an expression of C
    before: str = ""  # statements that convert into the workspace
    after: str = ""  # likewise out of it
    nbytes: int = 0  # what that takes of the workspace


def storage_of(value: ir.Value, name: str, shape: Shape, offset: int, is_input: bool) -> Storage:
    """Choose how a parameter is passed.

    Parameters
    ----------
    value : ir.Value
        An input or output of the node.
    name : str
        The parameter of the C function.
    offset : int
        Where its part of the workspace begins.
    """
    dtype, count = dtype_name(value), elements(shape)
    copy = f"(void *)((char *)workspace + {offset})"
    bits = element_bits(value)
    if dtype == "bfloat16":
        nbytes = 4 * count
        before = f"dso_widen({name}, {copy}, {count});"
        after = f"dso_round_to_bfloat16({copy}, {name}, {count});"
    elif bits < 8:
        nbytes = count
        sign = int(dtype.startswith("int"))
        before = f"dso_unpack({name}, {copy}, {count}, {bits}, {sign});"
        after = f"dso_pack({copy}, {name}, {count}, {bits});"
    else:
        return Storage(f"(void *){name}")
    nbytes = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
    return Storage(copy, before if is_input else "", "" if is_input else after, nbytes)


def declared(value: ir.Value) -> str:
    """Return the C type of a parameter's elements, as `declaration_of` declares it."""
    return c_type(value)


def helpers(storages: Iterable[Storage]) -> str:
    """Return the C functions that convert values, if one needs them."""
    return HELPERS if any(one.before or one.after for one in storages) else ""


def compute_in_float(model: onnx.ModelProto) -> None:
    """Make a model compute with float32 what is bfloat16 in it."""
    import onnx

    for info in (*model.graph.input, *model.graph.output):
        if info.type.tensor_type.elem_type == _BFLOAT16:
            info.type.tensor_type.elem_type = _FLOAT
    for tensor in model.graph.initializer:
        _widen(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            is_type = attribute.name in ("to", "dtype", "output_dtype", "stash_type")
            if is_type and attribute.i == _BFLOAT16:
                attribute.i = _FLOAT
            if attribute.type == onnx.AttributeProto.TENSOR:
                _widen(attribute.t)


def _widen(tensor: onnx.TensorProto) -> None:
    import onnx

    if tensor.data_type == _BFLOAT16:
        array = onnx.numpy_helper.to_array(tensor).astype("float32")
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
