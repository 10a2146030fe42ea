"""The virtual machine: storage, tensors, views, and how objects end."""

from __future__ import annotations

import gc
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime

from ...support.vm_assembler import *
from ...support.vm_programs import allocating, builtin, identity, make


def test_results_are_never_written_to_again() -> None:
    """Memory is reused only after the last reference to the tensor."""
    main = allocating(64, 0, [4, 4])
    results = [main() for _ in range(5)]
    assert [r.numpy()[0, 0] for r in results] == [1, 2, 3, 4, 5]
    addresses = {result.numpy().ctypes.data for result in results}
    results.clear()
    assert main().numpy().ctypes.data in addresses


def of_size() -> Callable[[int], Any]:
    """A function that allocates a tensor of so many bytes."""
    code = [
        call(1, 1, CONTEXT, reg(0), imm(0), const(0), const(1)),
        call(1, 2, reg(1), imm(0), reg(0), const(0)),
        ret(1),
    ]
    functions = [packed(f"vm.builtin.{name}") for name in ("alloc_storage", "alloc_tensor")]
    program = Program([Code("main", ["n"], code, 2), *functions], [(DATA_TYPE, UINT8), (STR, "")])
    main = make(program)["main"]
    return lambda nbytes: main((nbytes,))


def test_an_unused_piece_serves_smaller_sizes() -> None:
    """It serves them down to a quarter of its size; results that are in use are not touched."""
    main, size = of_size(), 1 << 20
    addresses = {
        nbytes: main(nbytes).numpy().ctypes.data for nbytes in (size, size // 3, size // 8)
    }
    assert addresses[size] == addresses[size // 3] != addresses[size // 8]
    kept = main(size)
    assert kept.numpy().ctypes.data != main(size // 3).numpy().ctypes.data


def resident() -> int:
    """Return the bytes of the process in memory (proc(5), statm)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_large_memory_is_freed_after_calls_without_it() -> None:
    """As a prompt's, in a session that goes on token by token; a call that uses it keeps it."""
    main, size = of_size(), 64 << 20
    for _ in range(100):
        main(size)
    address = main(size).numpy().ctypes.data
    before = resident()
    main(size).numpy().fill(1)
    assert resident() - before > size // 2
    assert main(size).numpy().ctypes.data == address
    for _ in range(64):
        main(64)
    assert resident() - before < size // 2


def test_growing_sizes_keep_the_memory_of_the_largest() -> None:
    """A new piece replaces the one before it."""
    main, most = of_size(), 64 << 20
    before = resident()
    for eighths in range(1, 9):
        main(most * eighths // 8).numpy().fill(1)
    assert resident() - before < 2 * most


def test_a_tensor_outlives_its_machine() -> None:
    """The last piece frees the pool."""
    result = allocating(64, 16, [3])()
    gc.collect()
    assert result.numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("nbytes", "offset", "shape"),
    [(64, 0, [17]), (64, 4, [16]), (64, -4, [4]), (64, 65, [0]), (0, 0, [1]), (64, 0, [2**62, 4])],
)
def test_a_tensor_is_within_its_storage(nbytes: int, offset: int, shape: list[int]) -> None:
    """A tensor beyond its storage is refused, however the sizes multiply."""
    with pytest.raises(ValueError, match="alloc_tensor: the tensor at offset .* is not within"):
        allocating(nbytes, offset, shape)()


def test_a_storage_beyond_memory_is_refused() -> None:
    """The error of a failed allocation has the requested size."""
    with pytest.raises(runtime.DeviceError, match="cpu:0: no memory for 1152921504606846976 bytes"):
        allocating(2**60, 0, [1])()


def test_a_storage_on_no_device_is_refused() -> None:
    """The code's index of a device is checked."""
    alloc = builtin("alloc_storage", 1, CONTEXT, const(0), reg(0), const(1), const(2),
                    constants=[(SHAPE, [4]), (DATA_TYPE, UINT8), (STR, "global")])  # fmt: skip
    with pytest.raises(runtime.DeviceError, match="uses device 1 of the machine, expected less"):
        alloc(1)


SCOPED = (CONTEXT, const(0), imm(0), const(1), const(2))
SCOPES = [(SHAPE, [16]), (DATA_TYPE, UINT8), (STR, "global"), (SHAPE, [4]), (DATA_TYPE, FLOAT32)]


def scoped(scope: str) -> Callable[..., Any]:
    """A function that allocates as a model for several devices does: the scope comes last."""
    code = [
        call(0, 1, *SCOPED),
        call(1, 2, reg(0), imm(0), const(3), const(4), const(5)),
        call(2, 3, reg(1), imm(1), imm(1), const(5)),
        ret(2),
    ]
    names = ("alloc_storage", "alloc_tensor", "to_device")
    functions = [Code("main", [], code, 3), *(packed(f"vm.builtin.{name}") for name in names)]
    return make(Program(functions, [*SCOPES, (STR, scope)]))["main"]


@pytest.mark.parametrize("scope", ["global", ""])
def test_the_memory_scope_of_a_tensor_is_taken(scope: str) -> None:
    """A device has one kind of memory, and cpu:1 is the CPU."""
    result = scoped(scope)()
    assert (result.shape, str(result.device)) == ((4,), "cpu:0")


def test_another_memory_scope_is_refused() -> None:
    """As TVM refuses it on the CPU, with what to do."""
    with pytest.raises(runtime.DeviceError, match="alloc_tensor: memory scope 'global.texture'"):
        scoped("global.texture")()


def test_a_memory_scope_is_a_str() -> None:
    """The type is checked."""
    to_device = builtin("to_device", 1, reg(0), imm(1), imm(0), imm(3))
    with pytest.raises(TypeError, match="to_device: argument 4, expected a str, found int"):
        to_device(np.zeros(2))


def test_reshape_is_a_view() -> None:
    """The elements stay where they are; a returned view of an argument is a copy."""
    reshape = builtin("reshape", 2, reg(0), reg(1))
    tensor = identity()(np.arange(6, dtype="int32"))
    view = reshape(tensor, (2, 3))
    assert view.numpy().ctypes.data == tensor.numpy().ctypes.data
    del tensor
    assert view.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    array = np.arange(6, dtype="int32")
    result = reshape(array, (3, 2))
    array[:] = 0
    assert result.numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="expected a contiguous tensor, and a shape with"):
        reshape(array, (4, 2))


def test_a_borrowed_view_in_a_tuple_is_kept() -> None:
    """A tuple or closure keeps a copy of an argument."""
    names = ["reshape", "make_tuple"]
    code = [call(1, 1, reg(0), const(0)), call(2, 2, reg(1), reg(0)), ret(2)]
    functions = [Code("main", ["x"], code, 3), *(packed(f"vm.builtin.{n}") for n in names)]
    array = np.arange(4, dtype="float64")
    view, whole = make(Program(functions, [(SHAPE, [2, 2])]))["main"](array)
    array[:] = 0
    assert view.numpy().tolist() == [[0, 1], [2, 3]] and whole.numpy().tolist() == [0, 1, 2, 3]


def test_to_device_knows_the_machines_devices() -> None:
    """A tensor stays on its device, or moves to one where the machine has memory."""
    to_device = builtin("to_device", 2, reg(0), reg(1), imm(0))
    assert to_device(np.ones(2, "float32"), 1).numpy().tolist() == [1, 1]
    with pytest.raises(runtime.DeviceError, match="device type 4, id 0, which is not a device"):
        to_device(np.ones(2, "float32"), 4)


def test_arrays_can_be_reset_in_place() -> None:
    """An item of a tuple can be released before the tuple."""
    names = ["make_tuple", "tuple_reset_item"]
    code = [call(1, 1, reg(0), imm(5)), call(VOID, 2, reg(1), imm(0)), ret(1)]
    functions = [Code("main", ["x"], code, 2), *(packed(f"vm.builtin.{n}") for n in names)]
    assert make(Program(functions))["main"](np.ones(3)) == (None, 5)


@pytest.mark.parametrize("index", [-1, 2])
def test_items_of_tuples_are_in_range(index: int) -> None:
    """An index beyond a tuple is an error."""
    get = builtin("tuple_getitem", 2, reg(0), reg(1))
    assert get(("a", "b"), 1) == "b"
    with pytest.raises(IndexError, match=f"tuple_getitem: index {index}, expected less than 2"):
        get(("a", "b"), index)
    with pytest.raises(TypeError, match="tuple_getitem: argument 1, expected a tuple, found int"):
        get(3, index)


def test_deep_tuples_end_without_recursion() -> None:
    """Thousands of tuples in tuples are released one after the other."""
    code = [
        branch(0, 5),
        call(2, 1, reg(0)),
        call(3, 2, reg(1)),
        call(4, 0, reg(2), reg(3)),
        ret(4),
        ret(0),
    ]
    functions = [
        Code("f", ["n", "t"], code, 5),
        packed("minus_one"),
        packed("vm.builtin.make_tuple"),
    ]
    assert make(Program(functions), minus_one=lambda n: n - 1)["f"](9000, 1) == 0


def counted(first: list[int], step: list[int], name: str, constants: Any) -> Callable[..., Any]:
    """A function that makes a value, and then n times another one of it; function 3 is a leaf."""
    code = [first, branch(0, 4), call(0, 1, reg(0)), step, goto(-3), ret(0)]
    functions = [packed("minus_one"), packed(f"vm.builtin.{name}"), packed("leaf")]
    program = Program([Code("f", ["n"], code, 2), *functions], constants)
    return make(program, minus_one=lambda n: n - 1, leaf=lambda *args: args)["f"]


@pytest.mark.parametrize(
    ("first", "step", "name", "constants"),
    [
        (
            call(1, 2, const(0), const(1)),
            call(1, 2, reg(1), const(1)),
            "reshape",
            [(TENSOR, np.zeros(4, "f4")), (SHAPE, (2, 2))],
        ),
        (call(1, 2, func(3), imm(0)), call(1, 2, func(3), reg(1)), "make_closure", []),
    ],
    ids=["views", "closures"],
)
def test_nested_objects_are_freed_without_recursion(first, step, name, constants) -> None:
    """Views of views, and closures in closures, are as deep as a program makes them."""
    main, results = counted(first, step, name, constants), []
    before = threading.stack_size(128 * 1024)
    thread = threading.Thread(target=lambda: results.append(main(20_000)))
    thread.start()
    thread.join()
    threading.stack_size(before)
    assert results == [0]
