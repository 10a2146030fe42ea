"""An assembler of relax's bytecode, in TVM's format: real TVM runs the result as well.

docs/relax.md has an example.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from struct import pack
from typing import NamedTuple

from runtime.error import ExportError
from runtime.modules import vm
from runtime.modules.vm import VMExecutable, VMFunction
from runtime.tensors.tensor import Tensor

_CALL, _RET, _GOTO, _IF = 1, 2, 3, 4
_REGISTER, _IMMEDIATE, _CONSTANT = 0, 1, 2
_VOID = 1 << 54
# TVM writes this number of arguments for a function that is called by name.
_ANY_ARGS = -2


class Register(NamedTuple):
    """A variable of a function."""

    number: int


class DataType(NamedTuple):
    """A DLDataType as a value: ``DataType(2, 32, 1)`` is float32."""

    code: int
    bits: int
    lanes: int = 1


class Label(NamedTuple):
    """A place in a function, to jump to; `Code.label` makes one, `Code.place` puts it."""

    number: int


MACHINE, NOTHING = Register(_VOID + 1), Register(_VOID)
"""Arguments: the virtual machine itself, which some built-in functions need, and None."""

Value = Register | DataType | Tensor | int | float | str | tuple[int, ...]
"""An argument of a call; a tuple is a shape. An int of 56 bits is in the instruction, and all other
values but registers are constants of the program."""


class Program:
    """Functions of bytecode with their constants; equal constants are stored once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # of the functions, by name
        self._codes: dict[str, Code] = {}
        self._constants: list[tuple[int, object]] = []
        self._known: dict[object, int] = {}  # the constants' numbers

    def function(self, name: str, params: Sequence[str] = ()) -> Code:
        """Begin a function of bytecode.

        Parameters
        ----------
        name : str
            Functions of this program call it by this name too, also before this line.
        params : sequence of str
            The names of its parameters.

        Raises
        ------
        ExportError
            The program has a function of this name.
        """
        if name in self._codes:
            raise ExportError(f"relax program: a second function {name!r}, expected one")
        self.number_of(name)
        self._codes[name] = Code(self, name, tuple(params))
        return self._codes[name]

    def number_of(self, name: str) -> int:
        """Return the number of a function in the table: of this program, or called by name."""
        return self._numbers.setdefault(name, len(self._numbers))

    def constant(self, value: DataType | Tensor | int | float | str | tuple[int, ...]) -> int:
        """Return the number of a constant."""
        index = _type_index(value)
        # 1 == 1.0 == True, and 0.0 == -0.0: the key has the type, and the bits of a float.
        key: tuple[int, object] = (index, id(value) if index == vm.TENSOR else value)
        if isinstance(value, float):
            key = (index, pack("<d", value))
        if key not in self._known:
            self._known[key] = len(self._constants)
            self._constants.append((index, value))
        return self._known[key]

    def executable(self) -> VMExecutable:
        """Make the module; its imports are added afterwards.

        Returns
        -------
        VMExecutable
            A new module with the functions in the order in which they were first named.

        Raises
        ------
        ExportError
            A label was not placed.
        BytecodeError
            A function does not end with `Code.ret` or `Code.jump`, or a call has a wrong number of
            arguments.
        """
        rows, offsets, words = [], array("q"), array("q")
        for name in self._numbers:
            code = self._codes.get(name)
            if code is None:
                rows.append(VMFunction(vm.PACKED, name, 0, 0, _ANY_ARGS, 0, ()))
                continue
            start = len(offsets)
            for instruction in code.instructions({self._numbers[other] for other in self._codes}):
                offsets.append(len(words))
                words.extend(instruction)
            span = (start, len(offsets), len(code.params), code.num_registers)
            rows.append(VMFunction(vm.BYTECODE, name, *span, code.param_names))
        return VMExecutable(rows, {}, self._constants, little(offsets), little(words))


class Code:
    """One function of a `Program`, which is written from its first instruction to its last.

    Attributes
    ----------
    params : tuple of Register
        The arguments.
    """

    def __init__(self, program: Program, name: str, param_names: tuple[str, ...]) -> None:
        self.name = name
        self.param_names = param_names
        self.params = tuple(map(Register, range(len(param_names))))
        self.num_registers = len(param_names)
        self._program = program
        self._instructions: list[list[int]] = []
        self._places: list[int] = []  # of each label, -1 before it is known
        self._jumps: list[tuple[int, Label]] = []
        self._free: list[int] = []

    # ---- instructions

    def call(self, function: str, *args: Value) -> Register:
        """Call a function of the program, a built-in one, or an import's; return its result."""
        words = self._argument_words(args)  # before a register is reused for the result
        number = self._free.pop() if self._free else self.num_registers
        self.num_registers = max(self.num_registers, number + 1)
        self._append([_CALL, number, self._program.number_of(function), len(args), *words])
        return Register(number)

    def assign(self, register: Register, function: str, *args: Value) -> None:
        """Call a function, and store its result in a register that has a value already."""
        number, words = self._program.number_of(function), self._argument_words(args)
        self._append([_CALL, register.number, number, len(args), *words])

    def run(self, function: str, *args: Value) -> None:
        """Call a function, and drop its result."""
        number, words = self._program.number_of(function), self._argument_words(args)
        self._append([_CALL, _VOID, number, len(args), *words])

    def ret(self, register: Register) -> None:
        """Return the value of a register."""
        self._append([_RET, register.number])

    def label(self) -> Label:
        """Make a label, which `place` gives its place."""
        self._places.append(-1)
        return Label(len(self._places) - 1)

    def place(self, label: Label) -> None:
        """Put a label before the next instruction."""
        self._places[label.number] = len(self._instructions)

    def jump(self, label: Label) -> None:
        """Go on at a label."""
        self._jumps.append((len(self._instructions), label))
        self._append([_GOTO, 0])

    def jump_if_zero(self, register: Register, label: Label) -> None:
        """Go on at a label if a register has the int 0 or False, else with the next instruction."""
        self._jumps.append((len(self._instructions), label))
        self._append([_IF, register.number, 0])

    # ---- registers

    def release(self, register: Register) -> None:
        """Let a later `call` store its result here; the value lives until then."""
        self._free.append(register.number)

    def kill(self, register: Register) -> None:
        """Drop the value of a register now, and let a later `call` use it."""
        number = self._program.number_of("vm.builtin.null_value")
        self._append([_CALL, register.number, number, 0])
        self.release(register)

    # ---- the words

    def instructions(self, bytecode: Collection[int]) -> list[list[int]]:
        """Return the words of each instruction; `bytecode` has the numbers of such functions."""
        for at, label in self._jumps:
            if self._places[label.number] < 0:
                raise ExportError(f"relax program: {self.name}: a jump to a label without a place")
            self._instructions[at][-1] = self._places[label.number] - at
        # TVM drops results of other functions only.
        dropped = [i for i in self._instructions if i[:2] == [_CALL, _VOID] and i[2] in bytecode]
        for words in dropped:
            words[1] = self.num_registers
        self.num_registers += bool(dropped)
        return self._instructions

    def _append(self, words: list[int]) -> None:
        self._instructions.append(words)

    def _argument_words(self, args: Sequence[Value]) -> list[int]:
        return [self._word(value) for value in args]

    def _word(self, value: Value) -> int:
        if isinstance(value, Register):
            return value.number
        if isinstance(value, int) and -(1 << 55) <= value < 1 << 55:
            return _IMMEDIATE << 56 | int(value) & (1 << 56) - 1
        return _CONSTANT << 56 | self._program.constant(value)


def _type_index(value: object) -> int:
    """Return TVM FFI's type index of a constant."""
    indices = {DataType: vm.DATA_TYPE, Tensor: vm.TENSOR, int: vm.INT, float: vm.FLOAT}
    indices |= {str: vm.STR, tuple: vm.SHAPE}
    return indices[type(value)]


def little(numbers: array[int]) -> bytes:
    """Return the words as the file has them."""
    return pack(f"<{len(numbers)}q", *numbers)
