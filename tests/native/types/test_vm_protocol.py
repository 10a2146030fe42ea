"""Models of relax run in a C program: TVM's protocol gives what it gives in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ...support.vm_assembler import *
from ..calls import assert_equal

ADD = "double add(double a, double b) { return 10 * a + b; }"


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
    make_code = [call(1, 3, func(2), reg(0)), ret(1)]
    main_code = [call(2, 0, reg(0)), call(3, 5, CONTEXT, reg(2), reg(1)), ret(3)]
    program = Program(
        [
            Code("make", ["a"], make_code, 2),
            Code("main", ["a", "b"], main_code, 4),
            Code("inner", ["b", "a"], [call(2, 4, reg(0), reg(1)), ret(2)], 3),
            packed("vm.builtin.make_closure"),
            packed("add"),
            packed("vm.builtin.invoke_closure"),
            Code("pair", ["x", "y"], [call(2, 7, reg(1), reg(0)), ret(2)], 3),
            packed("vm.builtin.make_tuple"),
        ]
    )
    folder: Path = tmp_path_factory.mktemp("closures")
    functions = {"add": "double(double a, double b)"}
    return library(folder / "model.so", program, ADD, functions)


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_a_model_computes_the_same_bytes(tmp_path: Path, dialect: str) -> None:
    """Operators of host code, tensors that the machine allocates."""
    path = library(tmp_path / "m.so", doubling(), TWICE_SOURCE, {"twice": TWICE}, format=dialect)
    found = assert_equal(path, "m main t0.1,1,2,-3\nm main t1,2,3,4\nm main i3\nm main")
    assert found[0].startswith("tensor:cdcc4c3e0000004000008040000")


def test_closures_and_tuples(closures: Path) -> None:
    """Functions as values, called by the machine and by the program."""
    found = assert_equal(
        closures,
        """
        m main f1 f2
        m make f3
        r1 () f4
        m pair i1 sa-long-text
        m pair n r1
        m main f1
        """,
    )
    assert found[:3] == ["21", "function", "43"]


PROTOCOL = """
    m vm_load_executable
    r0 vm_initialization i1 i0 i2
    r0 set_input spair sA-text-that-is-long t1,2
    r0 invoke_stateful spair
    r0 get_output spair
    r0 get_output spair i0
    r0 get_output spair i-1
    r0 get_output_arity spair
    r0 get_output_arity spair i1
    r0 get_function_arity smain
    r0 get_function_param_name smain i1
    r0 get_function_param_name smain i2
    r0 make f1
    r0 invoke_closure r12 f2
    r0 save_function spair ssaved b1 i5 t1,2
    r0 saved
    r0 save_function spair squiet b0 i5 i6
    r0 quiet
    r0 saved
    r0 save_function ssaved stwice b1
    r0 twice
    r0 save_function spair ssaved b1 i7 i8
    r0 saved
    r0 twice
    r0 main f1 f2
    r0 set_input spair i1 i2
    r0 invoke_stateful spair
    r0 get_output spair
    r0 set_input smain f1 f2
    r0 invoke_stateful smain
    r0 get_output smain
    r0 get_output_arity smain
"""
REFUSED = """
    m vm_load_executable
    r0 vm_initialization
    r0 vm_initialization i1 i0
    r0 vm_initialization i99 i0 i1
    r0 vm_initialization i1 i5 i1
    r0 vm_initialization i-1 i0 i1
    r0 invoke_stateful smain
    r0 get_output smain
    r0 set_input smain i1
    r0 set_input sother i1
    r0 set_input smian i1
    r0 get_function_arity sit's
    r0 save_function smain spair b1
    r0 save_function sother ssaved b1
    r0 set_input spair i1 i2
    r0 invoke_stateful spair
    r0 get_output spair i2
    r0 get_output spair i-3
    r0 get_function_param_name smain i-3
"""


@pytest.mark.parametrize("script", [PROTOCOL, REFUSED], ids=["used", "refused"])
def test_the_protocol_gives_what_it_gives_in_python(closures: Path, script: str) -> None:
    """Every function, and each mistake with the same kind of error and the same text."""
    found = assert_equal(closures, script)
    assert any("Error" in line for line in found)


def test_a_function_that_does_not_exist(tmp_path: Path) -> None:
    """All missing names at once, with near ones."""
    names = ["ad", *(f"other{i}" for i in range(9))]
    program = Program([Code("main", [], [call(0, 1), ret(0)], 1), *map(packed, names)])
    functions = {"add": "double(double a, double b)"}
    path = library(tmp_path / "m.so", program, ADD, functions)
    (found,) = assert_equal(path, "m main")
    assert found.startswith("FunctionNotFoundError: <VMExecutable")
    assert found.endswith("near names: 'add'")
