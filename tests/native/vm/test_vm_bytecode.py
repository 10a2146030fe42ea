"""relax.VMExecutable's payload, and the verifier of its bytecode."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

import numpy as np
import pytest

from runtime import BlobFormatError
from runtime.error import BytecodeError
from runtime.modules.vm import VMExecutable, load
from runtime.serial.stream import Reader

from ...support.vm_assembler import *


def make_program() -> Program:
    """Every kind of instruction, argument and constant, in two functions."""
    main = [
        call(VOID, 1, reg(0), imm(-1), const(5), const(2)),
        call(1, 2, reg(0)),
        branch(1, 3),
        call(2, 4, reg(0), reg(1)),
        goto(2),
        call(2, 3, func(4), const(0), VOID, CONTEXT),
        ret(2),
    ]
    helper = [call(2, 2, reg(1)), ret(2)]
    functions = [
        Code("main", ["x"], main, 3),
        packed("vm.builtin.check_tensor_info"),
        packed("vm.builtin.copy"),
        packed("anything"),
        Code("helper", ["a", "b"], helper, 3),
    ]
    constants = [
        (TENSOR, np.arange(6, dtype="float32").reshape(2, 3)),
        (SHAPE, [2, 3]),
        (STR, "a context"),
        (INT, -7),
        (FLOAT, 0.5),
        (DATA_TYPE, FLOAT32),
    ]
    return Program(functions, constants, [(0, "global")])


def read(program: Program) -> VMExecutable:
    """Load a payload, to its end."""
    reader = Reader(program.payload(), where="payload")
    executable = load(reader)
    assert reader.remaining == 0
    return executable


def test_a_payload_states_its_functions_and_weights() -> None:
    """Functions of the bytecode are listed, tensors among the constants are weights."""
    executable = read(make_program())
    assert executable.function_names() == ["main", "helper"]
    assert executable.signature("helper") == "helper(a, b)"
    assert executable.weights["constant_0"].numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert executable.is_binary_serializable and executable.is_runnable


def test_the_source_is_text_as_tvm_prints_it() -> None:
    """Each instruction is a line; columns are TVM's."""
    text = read(make_program()).get_source()
    assert text.splitlines()[:8] == [
        "@main:",
        "  call  vm.builtin.check_tensor_info in: %0, i-1, c[5], c[2] dst: %void",
        "  call  vm.builtin.copy  in: %0           dst: %1",
        "  If    %1, 3",
        "  call  helper           in: %0, %1       dst: %2",
        "  goto  2",
        "  call  anything         in: f[helper], c[0], %void, %vm dst: %2",
        "  ret   %2",
    ]


# ---- Refusals: one field of a good program is poked


def row(index: int, field: int, value: int) -> Callable[[Program], None]:
    """Poke the function table: 0 start, 1 end, 2 num_args, 3 register_file_size."""
    return lambda program: program.rows[index].__setitem__(field, value)


def word(index: int, value: int) -> Callable[[Program], None]:
    """Poke the words."""
    return lambda program: program.words.__setitem__(index, value)


def offset(index: int, value: int) -> Callable[[Program], None]:
    """Poke the offsets of instructions."""
    return lambda program: program.offsets.__setitem__(index, value)


# Words of main: call 0-7, call 8-12, if 13-15, call 16-21, goto 22-23, call 24-31, ret 32-33.
BYTECODE_ROWS = {
    "opcode-zero": (word(0, 0), "instruction 0 has opcode 0, expected 1"),
    "opcode-unknown": (word(13, 9), "instruction 2 has opcode 9, expected 1"),
    "opcode-huge": (word(0, 1 << 40), "has opcode 1099511627776, expected 1"),
    "jump-out": (
        word(15, 5),
        "instruction 2: jump, expected an offset to another instruction from 0 to 6",
    ),
    "jump-before": (word(23, -5), "instruction 4: jump, expected an offset"),
    "jump-nowhere": (word(23, 0), "instruction 4: jump, expected an offset"),
    "jump-wraps": (word(23, (1 << 63) - 1), "instruction 4: jump, expected an offset"),
    "jump-wraps-back": (word(15, -(1 << 63)), "instruction 2: jump, expected an offset"),
    "register-argument": (word(12, 3), "instruction 1: register, expected less than 3, found 3"),
    "register-negative": (word(12, (1 << 56) - 1), "register, expected less than 3, found -1"),
    "register-special": (word(12, VOID + 2), "register, expected less than 3"),
    "register-destination": (word(9, 3), "instruction 1: destination, expected less than 3"),
    "register-result": (word(33, 1 << 30), "instruction 6: result, expected less than 3"),
    "register-condition": (word(14, -1), "instruction 2: condition, expected less than 3"),
    "condition-void": (word(14, VOID), "instruction 2: condition, expected less than 3"),
    "destination-context": (word(9, CONTEXT), "instruction 1: destination, expected less than 3"),
    "constant": (word(6, const(6)), "instruction 0: constant, expected less than 6, found 6"),
    "constant-negative": (word(6, const(-1)), "constant, expected less than 6, found -1"),
    "function": (word(10, 5), "instruction 1: function, expected less than 5, found 5"),
    "function-negative": (word(10, -1), "instruction 1: function, expected less than 5"),
    "function-value": (word(28, func(9)), "instruction 5: function, expected less than 5"),
    "argument-kind": (word(12, 4 << 56), "kind of argument, expected 0 .register., 1"),
    "argument-kind-high": (word(12, -1), "kind of argument, expected 0 .register., 1"),
    "arguments-huge": (
        word(3, 1 << 62),
        "instruction 0 has opcode 1, expected .* all of its words",
    ),
    "arguments-negative": (word(3, -1), "instruction 0 has opcode 1, expected .* all of its words"),
    "arguments-routine": (word(18, 0), "number of arguments of 'main', expected 1, found 2"),
    "arguments-builtin": (
        word(18, 2),
        "number of arguments of 'vm.builtin.copy', expected 1, found 2",
    ),
    "first-offset": (offset(0, 1), "instruction 0 begins at word 1, expected 0"),
    "offset-overlaps": (offset(1, 4), "instruction 1 begins at word 4, expected 8"),
    "offset-out": (offset(8, 1 << 50), "instruction 8 begins at word"),
    "offset-negative": (offset(1, -8), "instruction 1 begins at word -8, expected 8"),
    "words-left": (lambda p: p.words.append(2), "1 words after the last instruction"),
    "instruction-unowned": (row(4, 0, 8), "instruction 7 belongs to no function, expected one"),
    "instruction-shared": (row(4, 0, 6), "'helper': instructions, expected none of another"),
    "start-negative": (row(0, 0, -1), "'main': first instruction, expected 0 to 9, found -1"),
    "start-out": (row(0, 0, 1 << 60), "'main': first instruction, expected 0 to 9"),
    "end-out": (row(4, 1, 10), "'helper': end of instructions, expected 8 to 9, found 10"),
    "end-before": (row(4, 1, 7), "'helper': end of instructions, expected 8 to 9, found 7"),
    "ends-in-a-call": (row(0, 1, 6), "instruction 6 belongs to no function, expected one"),
    "registers-huge": (row(0, 3, 1 << 40), "'main': register file size, expected 1 to 35"),
    "registers-few": (row(4, 3, 1), "'helper': register file size, expected 2 to"),
    "registers-negative": (row(0, 3, -1), "'main': register file size, expected 1 to"),
    "arguments-unnamed": (row(0, 2, 2), "'main': number of arguments, expected 1, one per"),
    "kind": (lambda p: setattr(p.functions[3], "kind", 3), "'anything': kind, expected 0"),
}


@pytest.mark.parametrize("name", BYTECODE_ROWS)
def test_malformed_bytecode_is_refused_at_load(name: str) -> None:
    """Bad opcodes, jumps, registers, indices and counts, each by its own guard."""
    poke, message = BYTECODE_ROWS[name]
    program = make_program()
    poke(program)
    with pytest.raises(BlobFormatError, match=message) as caught:
        read(program)
    assert caught.value.offset is not None and caught.value.offset > 0


def test_a_function_does_not_end_in_a_call() -> None:
    """Control does not run out of a function."""
    program = Program([Code("f", [], [call(0, 1)], 1), packed("vm.builtin.null_value")])
    with pytest.raises(BlobFormatError, match="last opcode, expected 2 .ret. or 3 .goto., found 1"):
        read(program)


def test_a_fault_is_reported_by_its_offset_in_the_file() -> None:
    """The offset is that of the very word, or of the function's entry."""
    program = make_program()
    program.words[13] = 9
    payload = program.payload()
    with pytest.raises(BlobFormatError) as caught:
        load(Reader(payload))
    assert payload[caught.value.offset :][:8] == pack("<q", 9)
    program = make_program()
    program.rows[4][3] = 1
    payload = program.payload()
    with pytest.raises(BlobFormatError) as caught:
        load(Reader(payload))
    assert payload[caught.value.offset :][12:18] == b"helper"


TABLE_ROWS = {
    "magic": (lambda p: setattr(p, "magic", 1), "magic 0x1, expected 0xd225de2f4214151e"),
    "version": (lambda p: setattr(p, "version", "0.99"), "version '0.99', expected '0.14'"),
    "same-name": (
        lambda p: setattr(p.functions[4], "name", "main"),
        "name 'main', expected a unique one",
    ),
    "no-name": (lambda p: setattr(p.functions[4], "name", ""), "name '', expected a unique one"),
    "nul-in-name": (lambda p: setattr(p.functions[4], "name", "a\0b"), "expected a unique one"),
    "scope-of-nothing": (lambda p: p.scopes.append((6, "x")), "scope of constant 6, expected less"),
    "scope-negative": (lambda p: p.scopes.append((-1, "x")), "scope of constant -1, expected less"),
    "scope-twice": (lambda p: p.scopes.append((0, "x")), "a second memory scope of constant 0"),
    "constant-type": (lambda p: p.constants.append((64, 0)), "constant of type index 64, expected"),
    "shape-negative": (lambda p: p.constants.append((SHAPE, [-1])), r"shape \(-1,\), expected at"),
    "shape-long": (lambda p: p.constants.append((SHAPE, [1] * 65)), "expected at most 64 extents"),
}


@pytest.mark.parametrize("name", TABLE_ROWS)
def test_malformed_tables_are_refused_at_load(name: str) -> None:
    """The tables around the bytecode are checked as well."""
    poke, message = TABLE_ROWS[name]
    program = make_program()
    poke(program)
    with pytest.raises(BlobFormatError, match=message):
        read(program)


@pytest.mark.parametrize("length", range(78, 84))
def test_a_long_name_is_cut_between_characters(length: int) -> None:
    """A message that is cut within a character of UTF-8 is still a BlobFormatError."""
    program = make_program()
    program.functions[0].name = "x" * length + "\N{SNOWMAN}" * 9
    program.words[13] = 9
    with pytest.raises(BlobFormatError, match="instruction"):
        read(program)


def test_a_fault_has_attributes_for_programs() -> None:
    """The error of an executable has the table and the index as attributes."""
    good = read(make_program())
    words = bytearray(good.words)
    words[8 * 13] = 9
    with pytest.raises(BytecodeError, match="instruction") as caught:
        VMExecutable(good.functions, {}, good.constants, good.offsets, words)
    assert (caught.value.table, caught.value.index) == ("words", 13)
