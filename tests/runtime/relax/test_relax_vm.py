"""relax models: in a library, in threads, and through the class with TVM's methods."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime import FunctionNotFoundError
from runtime.modules.vm import load
from runtime.relax.vm import VirtualMachine
from runtime.serial.stream import Reader

from ...support.vm_assembler import (
    TWICE,
    TWICE_SOURCE,
    VOID,
    Code,
    Program,
    call,
    doubling,
    packed,
    reg,
    ret,
)
from ...support.vm_programs import allocating, closure_program, make


def test_functions_state_their_parameters_and_owner() -> None:
    """Name and parameters; a function keeps its model, and a dropped one is freed at once."""
    model = make(Program([Code("main", ["x", "weight"], [ret(0)], 2)]))
    main: Any = model["main"]
    assert repr(main) == "<Function main: main(x, weight)>" and main.owner is model
    gone = weakref.ref(model)
    gc.disable()
    try:
        del main, model
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("offset", [0, 4, 16, 32])
def test_code_that_says_so_gets_arguments_that_are_aligned_to_16_bytes(offset: int) -> None:
    """Others are copied; without `dso.any_alignment` those below 64 bytes too."""
    whole = np.zeros(64, np.float32)
    start = -whole.ctypes.data % 64 + offset
    x = whole.view(np.uint8)[start : start + 16].view(np.float32)
    seen: list[int] = []

    def look(tensor: Any) -> int:
        seen.append(np.from_dlpack(tensor).ctypes.data)
        return 0

    says = [call(VOID, 2)]
    for code, names in (([], ["look"]), (says, ["look", "dso.any_alignment"])):
        body = [*code, call(1, 1, reg(0)), ret(1)]
        make(Program([Code("main", ["x"], body, 2), *map(packed, names)]), look=look)["main"](x)
    is_same = [address == x.ctypes.data for address in seen]
    assert is_same == [offset % 64 == 0, offset % 16 == 0]


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_a_model_travels_in_a_library(tmp_path: Path, dialect: str) -> None:
    """Bytecode over host code is exported and loaded in both dialects."""
    (tmp_path / "twice.c").write_text(TWICE_SOURCE)
    model = load(Reader(doubling().payload()))
    model.import_module(packer.CSourceModule(tmp_path / "twice.c", functions={"twice": TWICE}))
    packer.export_library(model, tmp_path / "model.so", format=dialect)
    loaded = runtime.load(tmp_path / "model.so")
    assert loaded["main"](np.arange(4, dtype="float32")).numpy().tolist() == [0, 2, 4, 6]
    copy = runtime.deserialize_module_from_bytes(
        runtime.serialize_module_to_bytes(loaded, export_dso=False)
    )
    assert copy["main"](np.ones(4, "float32")).numpy().tolist() == [2, 2, 2, 2]


def test_threads_share_a_machine() -> None:
    """Each call has a separate stack."""
    main, results = allocating(256, 0, [64]), []

    def run() -> None:
        for _ in range(50):
            values = set(main().numpy().tolist())
            results.append(len(values))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 200


def test_vm_load_executable_has_tvms_protocol() -> None:
    """The module that TVM's class works with."""
    machine = make(closure_program(), join=lambda a, b: f"{a}{b}")["vm_load_executable"]()
    machine["vm_initialization"](1, 0, 2)
    machine["set_input"]("main", "A", "B")
    machine["invoke_stateful"]("main")
    assert machine["get_output"]("main") == "BA"
    assert machine["get_output_arity"]("main") == -1
    assert machine["get_function_arity"]("main") == 2
    assert machine["get_function_param_name"]("main", 1) == "b"
    assert machine["invoke_closure"](machine["make"]("1"), "2") == "21"
    with pytest.raises(ValueError, match="2 numbers, expected 3 per device"):
        machine["vm_initialization"](1, 0)


def test_the_class_has_tvms_methods() -> None:
    """Inputs by name, outputs that are tuples, saved calls, timing."""
    names = ["vm.builtin.make_tuple"]
    code = [call(2, 1, reg(1), reg(0)), ret(2)]
    program = Program([Code("main", ["x", "y"], code, 3), *(packed(name) for name in names)])
    machine = VirtualMachine(make(program), "cpu")
    machine.set_input("main", 1, x=2)
    machine.invoke_stateful("main")
    assert machine.get_outputs("main") == (1, 2) == machine["main"](2, 1)
    machine.save_function("main", "saved", 3, 4)
    assert machine["saved"]() == (4, 3)
    machine.save_function("main", "quiet", 3, 4, include_return=False)
    assert machine["quiet"]() is None
    assert machine.time_evaluator("saved", number=2)().mean > 0
    assert machine.module["get_output_arity"]("main") == 2


def test_the_class_refuses_wrong_use() -> None:
    """Each mistake has a separate error."""
    machine = VirtualMachine(make(Program([Code("main", ["x"], [ret(0)], 1)])))
    with pytest.raises(ValueError, match="no input of 'main' was set; use set_input"):
        machine.invoke_stateful("main")
    with pytest.raises(ValueError, match="'main' was not invoked; use invoke_stateful"):
        machine.get_outputs("main")
    with pytest.raises(TypeError, match="'main' takes 1 arguments, found 2"):
        machine.set_input("main", 1, 2)
    with pytest.raises(TypeError, match="main: no parameter 'z', expected of"):
        machine.set_input("main", z=1)
    with pytest.raises(ValueError, match="'main' is a function of the model"):
        machine.save_function("main", "main", 1)
    with pytest.raises(FunctionNotFoundError, match="has no function 'other'"):
        machine.set_input("other", 1)
    with pytest.raises(FunctionNotFoundError, match="vm_load_executable"):
        VirtualMachine(runtime.Module())
