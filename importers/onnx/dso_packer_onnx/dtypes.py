"""The data types of values: their names, and how bytecode and C write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer.relax import DataType
from runtime.tensors.dtype import string_to_dtype

if TYPE_CHECKING:
    import onnx_ir as ir

_C_TYPES = {
    "bool": "bool",
    "float16": "_Float16",
    "float32": "float",
    "float64": "double",
    "complex64": "float _Complex",
    "complex128": "double _Complex",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def dtype_name(value: ir.Value) -> str:
    """Return the name of a value's data type: ``"float32"``, ``"bfloat16"``, ``"int4"``."""
    assert value.dtype is not None  # `read` refuses a value without
    return str(value.dtype.numpy().name)


def data_type(value: ir.Value) -> DataType:
    """Return a value's data type for bytecode."""
    return DataType(*string_to_dtype(dtype_name(value)))


def c_type(value: ir.Value) -> str:
    """Return the C type of a value's elements; ``"void"`` if every compiler lacks one."""
    return _C_TYPES.get(dtype_name(value), "void")


def element_bits(value: ir.Value) -> int:
    """Return the bits of an element; elements of less than a byte are packed."""
    assert value.dtype is not None
    return int(value.dtype.bitwidth)
