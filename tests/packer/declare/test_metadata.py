"""Metadata: the types of functions in TVM FFI's terms, read by tvm_ffi in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from packer.declare.metadata import type_schema

from ...support.every_code import DECLARATIONS

BY_NAME = {declaration.name: declaration for declaration in DECLARATIONS}
# Standard input: schemas by name, as JSON. Standard output: how tvm_ffi shows each.
READER = """
import json, sys, tvm_ffi
read = tvm_ffi.core.TypeSchema.from_json_str
schemas = {name: read(json.dumps(text)) for name, text in json.load(sys.stdin).items()}
assert {schema.origin for schema in schemas.values()} == {"Callable"}
json.dump({name: repr(schema) for name, schema in schemas.items()}, sys.stdout)
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """Each function's schema, as tvm_ffi shows it."""
    schemas = {name: type_schema(declaration) for name, declaration in BY_NAME.items()}
    command = [sys.executable, "-P", "-c", READER]
    run = subprocess.run(
        command, input=json.dumps(schemas), capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(run.stdout)
    return found


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
def test_tvm_ffi_reads_the_types(name: str, text: str, shown: dict[str, str]) -> None:
    """The schema of a function, as tvm_ffi shows it."""
    assert shown[name].startswith(text)


def test_every_function_has_a_schema(shown: dict[str, str]) -> None:
    """tvm_ffi reads each of them."""
    assert set(shown) == set(BY_NAME)
