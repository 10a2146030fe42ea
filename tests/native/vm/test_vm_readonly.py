"""Read-only memory stays read-only in the virtual machine."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.vm_assembler import *


def readonly_array() -> Any:
    """A NumPy array that may only be read."""
    array = np.arange(16, dtype="float32")
    array.flags.writeable = False
    return array


def memory_map(path: Path) -> Any:
    """A file in memory that a write would end the process of."""
    path.write_bytes(bytes(64))
    return np.memmap(path, "float32", "r")


@pytest.mark.parametrize("in_a_tuple", [False, True])
@pytest.mark.parametrize("kind", ["array", "bytes", "map", "dlpack", "tensor"])
def test_a_declared_output_refuses_read_only_memory(
    kind: str, in_a_tuple: bool, tmp_path: Path
) -> None:
    """An argument, a view of it, and an item of a tuple all stay read-only; others are written."""
    made = {
        "array": readonly_array,
        "bytes": lambda: memoryview(bytes(64)).cast("f"),
        "map": lambda: memory_map(tmp_path / "map"),
        "dlpack": lambda: runtime.from_dlpack(runtime.tensor(readonly_array())),
        "tensor": lambda: runtime.Tensor(bytes(64), (16,), "float32"),
    }
    main = writer(tmp_path, in_a_tuple=in_a_tuple)
    array = made[kind]()
    with pytest.raises(ValueError, match=r"twice: argument 2 'y': expected a writable tensor"):
        main((array,) if in_a_tuple else array)
    output = runtime.empty((16,), "float32")
    main((output,) if in_a_tuple else output)
    assert output.numpy().tolist() == [2.0] * 16


def writer(folder: Path, *, in_a_tuple: bool) -> Any:
    """``main(y)`` passes a view of y as the output of `twice`, whose input is ones."""
    first = [call(0, 3, reg(0), imm(0))] if in_a_tuple else []
    code = [
        *first,
        call(1, 2, reg(0), const(1)),
        call(VOID, 1, const(0), reg(1), imm(16)),
        ret(VOID),
    ]
    names = ["twice", "vm.builtin.reshape", "vm.builtin.tuple_getitem"]
    constants = [(TENSOR, np.ones((4, 4), "float32")), (SHAPE, [4, 4])]
    program = Program([Code("main", ["y"], code, 2), *map(packed, names)], constants)
    return host_model(folder, program)["main"]


def host_model(folder: Path, program: Program) -> Any:
    """A program over the host function `twice`."""
    executable = load(Reader(program.payload()))
    (folder / "twice.c").write_text(TWICE_SOURCE)
    executable.import_module(packer.CSourceModule(folder / "twice.c", functions={"twice": TWICE}))
    packer.export_library(executable, folder / "model.so")
    return runtime.load(folder / "model.so")


def test_a_closure_and_a_dynamic_call_refuse_it_too(tmp_path: Path) -> None:
    """However bytecode reaches the function, it is the same Function object."""
    code = [
        call(1, 2, func(1), reg(0), imm(16)),
        call(VOID, 3, CONTEXT, reg(1), const(0)),
        ret(VOID),
    ]
    dynamic = [call(VOID, 4, func(1), const(0), reg(0), const(1)), ret(VOID)]
    names = ["make_closure", "invoke_closure", "call_tir_dyn"]
    constants = [(TENSOR, np.ones(16, "float32")), (SHAPE, [16])]
    program = Program(
        [
            Code("main", ["y"], code, 2),
            packed("twice"),
            *(packed(f"vm.builtin.{name}") for name in names),
            Code("dynamic", ["y"], dynamic, 1),
        ],
        constants,
    )
    library = host_model(tmp_path, program)
    for name in ("main", "dynamic"):
        with pytest.raises(ValueError, match=r"twice: argument 2 'y': expected a writable tensor"):
            library[name](readonly_array())
        output = runtime.empty((16,), "float32")
        library[name](output)
        assert output.numpy().tolist() == [2.0] * 16


def test_a_callback_gets_it_read_only() -> None:
    """A Python function that bytecode calls can no more write than its caller."""
    seen: list[bool] = []
    runtime.register_func("test.vm.look", override=True)(
        lambda tensor: seen.append(tensor.numpy().flags.writeable)
    )
    code = [call(VOID, 1, reg(0)), ret(VOID)]
    program = Program([Code("main", ["x"], code, 1), packed("test.vm.look")])
    main = load(Reader(program.payload()))["main"]
    for array in (readonly_array(), np.zeros(16, "float32")):
        main(array)
        main(np.concatenate([array, array])[4:12] if array.flags.writeable else array[4:12])
    assert seen == [False, False, True, True]


def test_results_of_constants_are_read_only() -> None:
    """A result that is a constant, or a view of one, is a read-only Tensor, aligned or not."""
    code = [call(0, 1, const(0), const(1)), call(0, 2, const(0), reg(0)), ret(0)]
    names = ["vm.builtin.reshape", "vm.builtin.make_tuple"]
    constants = [(TENSOR, np.arange(6, dtype="int32")), (SHAPE, [2, 3])]
    program = Program([Code("main", [], code, 1), *map(packed, names)], constants)
    for padding in range(0, 64, 4):
        executable = load(Reader((bytes(padding) + program.payload())[padding:]))
        for result in executable["main"]():
            assert result.readonly and result.raw.readonly
            assert not result.numpy().flags.writeable
            with pytest.raises(ValueError, match="expected a writable tensor"):
                result.copy_from(np.zeros(result.shape, "int32"))
            assert pickle.loads(pickle.dumps(result.numpy())).tolist() == result.numpy().tolist()


@pytest.mark.parametrize("start", range(4))
def test_a_returned_argument_is_as_writable_as_it_was(start: int) -> None:
    """The copy that a model returns in place of an argument stays read-only, however aligned."""
    program = Program([Code("main", ["x"], [ret(0)], 1)])
    main = load(Reader(program.payload()))["main"]
    assert main(readonly_array()[start:]).readonly
    assert main((readonly_array()[start:],))[0].readonly
    assert not main(np.zeros(16, "float32")[start:]).readonly
