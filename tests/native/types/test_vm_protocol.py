"""Models of relax run in a C program: TVM's protocol gives what it gives in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packer
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.dso_script import assert_same, tensor, text_of
from ...support.vm_assembler import *
from ...support.vm_programs import closure_program

JOIN = "double join(double a, double b) { return 10 * a + b; }"
DECLARED = {"join": "double(double a, double b)"}
TWO = tensor(np.array([1, 2], "f4"))


def library(
    path: Path, program: Program, source: str, functions: dict[str, str], **kind: str
) -> Path:
    """A model over host code."""
    model = load(Reader(program.payload()))
    model.import_module(packer.CSourceModule(source, functions=functions))
    packer.export_library(model, path, **kind)
    return path


@pytest.fixture(scope="module")
def closures(tmp_path_factory) -> Path:
    """``make(a)`` gives ``inner`` with a saved, ``main(a, b)`` calls it; ``pair`` swaps."""
    pair = Code("pair", ["x", "y"], [call(2, 7, reg(1), reg(0)), ret(2)], 3)
    program = Program([*closure_program().functions, pair, packed("vm.builtin.make_tuple")])
    folder: Path = tmp_path_factory.mktemp("closures")
    return library(folder / "model.so", program, JOIN, DECLARED)


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_a_model_computes_the_same_bytes(tmp_path: Path, dialect: str) -> None:
    """Operators of host code, tensors that the machine allocates."""
    path = library(tmp_path / "m.so", doubling(), TWICE_SOURCE, {"twice": TWICE}, format=dialect)
    x, y = (tensor(np.array(values, "f4")) for values in ([0.1, 1, 2, -3], [1, 2, 3, 4]))
    found = assert_same(path, f"call 0 main {x}\ncall 0 main {y}\ncall 0 main i:3\ncall 0 main")
    assert found[0].startswith("tensor 2.32.1 (4) cdcc4c3e0000004000008040000")


def test_closures_and_tuples(closures: Path) -> None:
    """Functions as values, called by the machine and by the program."""
    found = assert_same(
        closures,
        """
        call 0 main f:1 f:2
        call 0 make f:3
        apply 1 f:4
        call 0 pair i:1 s:a-long-text
        call 0 pair n o:1
        call 0 main f:1
        """,
    )
    assert found[:3] == [text_of(21.0), "slot 1 function", text_of(43.0)]


PROTOCOL = f"""
    call 0 vm_load_executable
    call 1 vm_initialization i:1 i:0 i:2
    call 1 set_input s:pair s:A-text-that-is-long {TWO}
    call 1 invoke_stateful s:pair
    call 1 get_output s:pair
    call 1 get_output s:pair i:0
    call 1 get_output s:pair i:-1
    call 1 get_output_arity s:pair
    call 1 get_output_arity s:pair i:1
    call 1 get_function_arity s:main
    call 1 get_function_param_name s:main i:1
    call 1 get_function_param_name s:main i:2
    call 1 make f:1
    call 1 invoke_closure o:2 f:2
    call 1 save_function s:pair s:saved b:1 i:5 {TWO}
    call 1 saved
    call 1 save_function s:pair s:quiet b:0 i:5 i:6
    call 1 quiet
    call 1 saved
    call 1 save_function s:saved s:twice b:1
    call 1 twice
    call 1 save_function s:pair s:saved b:1 i:7 i:8
    call 1 saved
    call 1 twice
    call 1 main f:1 f:2
    call 1 set_input s:pair i:1 i:2
    call 1 invoke_stateful s:pair
    call 1 get_output s:pair
    call 1 set_input s:main f:1 f:2
    call 1 invoke_stateful s:main
    call 1 get_output s:main
    call 1 get_output_arity s:main
"""
REFUSED = """
    call 0 vm_load_executable
    call 1 vm_initialization
    call 1 vm_initialization i:1 i:0
    call 1 vm_initialization i:99 i:0 i:1
    call 1 vm_initialization i:1 i:5 i:1
    call 1 vm_initialization i:-1 i:0 i:1
    call 1 invoke_stateful s:main
    call 1 get_output s:main
    call 1 set_input s:main i:1
    call 1 set_input s:other i:1
    call 1 set_input s:mian i:1
    call 1 get_function_arity s:it's
    call 1 save_function s:main s:pair b:1
    call 1 save_function s:other s:saved b:1
    call 1 set_input s:pair i:1 i:2
    call 1 invoke_stateful s:pair
    call 1 get_output s:pair i:2
    call 1 get_output s:pair i:-3
    call 1 get_function_param_name s:main i:-3
"""


@pytest.mark.parametrize("script", [PROTOCOL, REFUSED], ids=["used", "refused"])
def test_the_protocol_gives_what_it_gives_in_python(closures: Path, script: str) -> None:
    """Every function, and each mistake with the same kind of error and the same text."""
    found = assert_same(closures, script)
    assert any("Error" in text for text in found)


def test_a_function_that_does_not_exist(tmp_path: Path) -> None:
    """All missing names at once, with near ones."""
    names = ["joi", *(f"other{i}" for i in range(9))]
    program = Program([Code("main", [], [call(0, 1), ret(0)], 1), *map(packed, names)])
    (found,) = assert_same(library(tmp_path / "m.so", program, JOIN, DECLARED), "call 0 main")
    assert found.startswith("error FunctionNotFoundError: <VMExecutable")
    assert found.endswith("near names: 'join'")
