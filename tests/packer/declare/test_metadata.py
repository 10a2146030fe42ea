"""Metadata: the types of functions in TVM FFI's terms, read by tvm_ffi."""

from __future__ import annotations

import json

import pytest

from packer.declare.metadata import type_schema

from ...support.every_code import DECLARATIONS

tvm_ffi = pytest.importorskip("tvm_ffi")

BY_NAME = {declaration.name: declaration for declaration in DECLARATIONS}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("next_char", "Callable[[int], int]"),
        ("half16", "Callable[[float], float]"),
        ("turned", "Callable[[float | Array[float] | Tensor], Array[float]]"),
        ("total", "Callable[[Tensor, int], float]"),
        ("fill", "Callable[[Tensor | None, int], None]"),
        ("address", "Callable[[Tensor | bytes | None], int]"),
        ("anything", "Callable[[Tensor | ctypes.c_void_p | bytes | None], int]"),
        ("joined", "Callable[[Array[str] | None], int]"),
        ("counter_new", "Callable[[int], ctypes.c_void_p | None]"),
        ("counter_open", "Callable[[int], Array[Any]]"),
        ("stats", "Callable[[Tensor, int], Array[Any]]"),
        ("only_mean", "Callable[[Tensor, int], float]"),
        ("mirrored", "Callable[[Array[Any]], Array[Any]]"),
        ("named", "Callable[[int], Array[str]]"),
        ("integral", "Callable[[Callable[..., Any] | None, Tensor | ctypes.c_void_p | None,"),
    ],
)
def test_tvm_ffi_reads_the_types(name: str, text: str) -> None:
    """The schema of a function, as tvm_ffi shows it."""
    schema = tvm_ffi.core.TypeSchema.from_json_obj(type_schema(BY_NAME[name]))
    assert repr(schema).startswith(text)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_function_has_a_schema(name: str) -> None:
    """tvm_ffi reads each of them."""
    text = json.dumps(type_schema(BY_NAME[name]))
    assert tvm_ffi.core.TypeSchema.from_json_str(text).origin == "Callable"
