"""Tensors without elements in the virtual machine, and through host functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.vm_assembler import *

NAMES = [
    *("alloc_storage", "alloc_tensor", "make_tuple", "reshape", "shape_of", "tensor_to_shape"),
    *("to_device", "ensure_zero_offset", "copy"),
]
BUILTINS = {name: index + 2 for index, name in enumerate(NAMES)}


def model(folder: Path, code: list[list[int]], constants: list[tuple[int, Any]]) -> Any:
    """``main(x)`` of a library that has `twice`, too."""
    builtins = [packed(f"vm.builtin.{name}") for name in NAMES]
    functions = [Code("main", ["x"], code, 8), packed("twice"), *builtins]
    executable = load(Reader(Program(functions, constants).payload()))
    (folder / "twice.c").write_text(TWICE_SOURCE)
    executable.import_module(packer.CSourceModule(folder / "twice.c", functions={"twice": TWICE}))
    packer.export_library(executable, folder / "model.so")
    return runtime.load(folder / "model.so")["main"]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3), (5, 0)])
@pytest.mark.parametrize("storage", [0, 64])
def test_empty_tensors_pass_through_host_functions(
    tmp_path: Path, shape: tuple[int, ...], storage: int
) -> None:
    """Allocated in no bytes or at a storage's end, reshaped, copied, nested: none has a byte."""
    code = [
        call(1, BUILTINS["alloc_storage"], CONTEXT, const(0), imm(0), const(1), const(2)),
        call(2, BUILTINS["alloc_tensor"], reg(1), imm(storage), const(3), const(4)),
        call(VOID, 1, reg(0), reg(2), imm(0)),
        call(3, BUILTINS["reshape"], reg(2), const(5)),
        call(4, BUILTINS["reshape"], reg(0), const(5)),
        call(5, BUILTINS["to_device"], reg(4), imm(1), imm(0)),
        call(VOID, 1, const(6), reg(3), imm(0)),
        call(6, BUILTINS["ensure_zero_offset"], const(6)),
        call(7, BUILTINS["make_tuple"], *map(reg, (2, 3, 5, 6)), const(6)),
        ret(7),
    ]
    flat = (0, 7)
    constants = [
        *((SHAPE, [storage]), (DATA_TYPE, UINT8), (STR, "global"), (SHAPE, list(shape))),
        *((DATA_TYPE, FLOAT32), (SHAPE, list(flat)), (TENSOR, np.zeros(shape, "float32"))),
    ]
    main = model(tmp_path, code, constants)
    results: list[Any] = []
    for array in (np.zeros(shape, "float32"), np.zeros((*shape, 2), "float32")[..., 0]):
        results += [*main(array), *main(runtime.tensor(np.ascontiguousarray(array)))]
    assert [result.shape for result in results] == 4 * [shape, flat, flat, shape, shape]
    assert all(result.nbytes == 0 and result.numpy().size == 0 for result in results)
    assert all(bytes(result.raw) == b"" for result in results)


def test_an_empty_vector_is_the_shape_of_a_scalar(tmp_path: Path) -> None:
    """No byte of an empty vector is read."""
    code = [
        call(1, BUILTINS["tensor_to_shape"], reg(0)),
        call(2, BUILTINS["shape_of"], reg(0)),
        call(3, BUILTINS["make_tuple"], reg(1), reg(2)),
        ret(3),
    ]
    assert model(tmp_path, code, [])(np.zeros(0, "int64")) == ((), (0,))


def test_sub_byte_tensors_of_no_bytes(tmp_path: Path) -> None:
    """Packed elements in no storage: none fits, and no elements do."""
    for count in (0, 1):
        code = [
            call(1, BUILTINS["alloc_storage"], CONTEXT, const(0), imm(0), const(1), const(2)),
            call(2, BUILTINS["alloc_tensor"], reg(1), imm(0), const(3), const(4)),
            ret(2),
        ]
        constants = [
            *((SHAPE, [0]), (DATA_TYPE, UINT8), (STR, "global"), (SHAPE, [count])),
            (DATA_TYPE, (0, 1, 1)),
        ]
        main = model(tmp_path, code, constants)
        if count == 0:
            assert main(None).nbytes == 0
        else:
            with pytest.raises(ValueError, match="is not within its storage of 0 bytes"):
                main(None)
