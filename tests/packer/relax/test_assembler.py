"""Programs that packer.relax assembles are TVM's bytecode, and run here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.relax import MACHINE, DataType, Program
from runtime.error import BytecodeError, ExportError
from runtime.modules.vm import VMExecutable, load
from runtime.serial.stream import Reader, Writer

from ...support.relax_programs import counting, growing, scaling_model
from ...support.vm_assembler import doubling
from ...support.vm_programs import Operators


def payload(executable: VMExecutable) -> bytes:
    """The bytes of the payload."""
    writer = Writer()
    executable.save_to_binary(writer)
    return b"".join(bytes(chunk) for chunk in writer.finish())


def test_the_bytes_are_those_of_the_format() -> None:
    """The same program as the one that the tests assemble word by word."""
    program = Program()
    main = program.function("main", ["x"])
    storage = main.call("vm.builtin.alloc_storage", MACHINE, (16,), 0, DataType(1, 8), "global")
    y = main.call("vm.builtin.alloc_tensor", storage, 0, (4,), DataType(2, 32))
    main.run("twice", main.params[0], y, 4)
    main.ret(y)
    assert payload(program.executable()) == doubling().payload()


def test_a_payload_is_read_again_with_equal_text() -> None:
    """TVM's text has the instructions, with the distances of the jumps."""
    executable = counting().executable()
    again = load(Reader(payload(executable)))
    assert again.get_source() == executable.get_source()
    assert executable.get_source().splitlines()[:8] == [
        "@main:",
        "  call  vm.builtin.copy  in: i0           dst: %1",
        "  call  is_less          in: %1, %0       dst: %2",
        "  If    %2, 3",
        "  call  increased        in: %1           dst: %1",
        "  goto  -3",
        "  ret   %1",
        "",
    ]


def test_loops_and_branches_run(tmp_path: Path) -> None:
    """A program counts with C operators until the condition is zero."""
    executable, host = counting().executable(), growing()
    executable.import_module(host)
    model = runtime.load(packer.export_library(executable, tmp_path / "m.so"))
    assert [model["main"](n) for n in (0, 1, 7)] == [0, 1, 7]


@pytest.mark.parametrize(
    "value", [5, -5, 2**54, -(2**55), 2**60, -(2**63), 1.5, -0.0, "text", "a" * 100]
)
def test_constants_and_immediates_arrive(value) -> None:
    """Small ints are in the instruction, everything else is a constant."""
    program = Program()
    main = program.function("main")
    main.ret(main.call("vm.builtin.copy", value))
    executable = load(Reader(payload(program.executable())))
    result = executable["main"]()
    assert (result, type(result)) == (value, type(value))
    assert np.signbit(result) == np.signbit(value) if value == 0 else True


def test_equal_constants_are_stored_once() -> None:
    """1 and 1.0, 0.0 and -0.0 and equal shapes of other types are not equal."""
    program = Program()
    numbers = [
        program.constant(v) for v in (1, 1.0, "a", (1,), DataType(1, 8), 0.0, -0.0, (1, 8, 1))
    ]
    assert numbers == list(range(8))
    assert [program.constant(v) for v in ("a", (1,), 1, DataType(1, 8, 1))] == [2, 3, 0, 4]


def test_tensors_are_constants() -> None:
    """A constant tensor is a view of the payload."""
    program = Program()
    main = program.function("main")
    main.ret(main.call("vm.builtin.copy", runtime.tensor(np.arange(3.0))))
    executable = load(Reader(payload(program.executable())))
    assert executable["main"]().numpy().tolist() == [0, 1, 2]


def test_shapes_branches_and_tuples(tmp_path: Path) -> None:
    """The program that tests/tvm runs in real TVM too."""
    model = runtime.load(packer.export_library(scaling_model(), tmp_path / "m.so"))
    square, wide = np.arange(4, dtype="f4").reshape(2, 2), np.arange(6, dtype="f4").reshape(2, 3)
    assert model["main"](square).numpy().tolist() == (3 * square).tolist()
    five, same = model["main"](wide)
    assert five.numpy().tolist() == (5 * wide).tolist()
    assert same.numpy().tolist() == wide.tolist()
    with pytest.raises(ValueError, match="main: input 'x': 1 dimensions, expected 2"):
        model["main"](wide[0])


def test_functions_call_each_other_before_they_are_defined() -> None:
    """The table has one row for a name."""
    program = Program()
    main = program.function("main", ["x"])
    main.ret(main.call("inner", main.params[0], 2))
    inner = program.function("inner", ["x", "n"])
    inner.ret(inner.call("sum", *inner.params))
    executable = program.executable()
    executable.import_module(Operators(sum=lambda x, n: x + n))
    assert executable.function_names() == ["main", "inner"]
    assert executable["main"](40) == 42


def test_branches_assign_to_one_register() -> None:
    """The code after both reads it."""
    program = Program()
    code = program.function("main", ["x"])
    made, other, end = code.call("vm.builtin.copy", 1), code.label(), code.label()
    code.jump_if_zero(code.params[0], other)
    code.assign(made, "vm.builtin.copy", 2)
    code.jump(end)
    code.place(other)
    code.assign(made, "vm.builtin.copy", 3)
    code.place(end)
    code.ret(made)
    executable = program.executable()
    assert [executable["main"](x) for x in (0, 1)] == [3, 2]


def test_released_registers_are_used_again() -> None:
    """A killed value is freed at once, a released one when its register is used again."""
    program = Program()
    main = program.function("main", ["x"])
    first = main.call("vm.builtin.copy", 1)
    main.kill(first)
    second = main.call("vm.builtin.copy", 2)
    main.release(second)
    third = main.call("sum", second, 3)
    main.ret(third)
    assert first == second == third
    executable = program.executable()
    executable.import_module(Operators(sum=lambda a, b: a + b))
    assert executable["main"](0) == 5
    assert executable.table_row("main").register_file_size == 2


def test_mistakes_are_refused() -> None:
    """A second function, a label without a place, no return, and wrong counts of arguments."""
    program = Program()
    main = program.function("main")
    with pytest.raises(ExportError, match="relax program: a second function 'main', expected one"):
        program.function("main")
    main.jump(label := main.label())
    with pytest.raises(ExportError, match="relax program: main: a jump to a label without a place"):
        program.executable()
    main.place(label)
    main.run("vm.builtin.copy", 1)
    with pytest.raises(BytecodeError, match="last opcode, expected 2 .ret. or 3 .goto., found 1"):
        program.executable()
    main.ret(main.call("vm.builtin.copy", 1, 2))
    with pytest.raises(BytecodeError, match=r"arguments of 'vm.builtin.copy', expected 1"):
        program.executable()
