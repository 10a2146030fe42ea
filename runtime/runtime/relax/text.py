"""Bytecode of relax's virtual machine as text, in the form that TVM prints.

    @main:
      call  vm.builtin.alloc_storage in: %vm, c[0], i0, c[1], c[2] dst: %1
      ret   %1

``%1`` is a register, ``i0`` an immediate, ``c[0]`` a constant, ``f[name]`` a function.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..modules.vm import VMExecutable, VMFunction

_VOID = 1 << 54
_SPECIAL = {_VOID: "%void", _VOID + 1: "%vm"}
_CALL, _RET, _GOTO = 1, 2, 3


def disassemble(executable: VMExecutable) -> str:
    """Write the functions of an executable as text, each with its instructions."""
    offsets, words = _numbers(executable.offsets), _numbers(executable.words)
    names = [function.name for function in executable.functions]
    parts = []
    for function in executable.functions:
        if function.kind == 1:
            span = range(function.start, function.end)
            lines = [_instruction(words, offsets[index], names) for index in span]
            parts.append("\n".join((f"@{function.name}:", *lines, "")))
        else:
            parts.append(f"@{function.name} {_without_code(function)};\n")
    return "\n".join(parts) + "\n"


def _without_code(function: VMFunction) -> str:
    return "packed_func" if function.kind == 0 else f"num_inputs={function.num_args} vm_tir_func"


def _numbers(data: memoryview) -> tuple[int, ...]:
    return Struct(f"<{len(data) // 8}q").unpack(data)


def _register(number: int) -> str:
    return _SPECIAL.get(number, f"%{number}")


def _argument(word: int, names: list[str]) -> str:
    kind, value = word >> 56 & 0xFF, word & (1 << 56) - 1
    value -= value >> 55 << 56
    forms = {0: _register(value), 1: f"i{value}", 2: f"c[{value}]"}
    return forms[kind] if kind in forms else f"f[{names[value]}]"


def _instruction(words: tuple[int, ...], at: int, names: list[str]) -> str:
    opcode, first, *_ = words[at : at + 2]
    if opcode == _CALL:
        function, num_args = words[at + 2 : at + 4]
        args = ", ".join(_argument(word, names) for word in words[at + 4 : at + 4 + num_args])
        return f"  call  {names[function]:<16} in: {args:<12} dst: {_register(first)}"
    if opcode == _RET:
        return f"  ret   {_register(first)}"
    if opcode == _GOTO:
        return f"  goto  {first}"
    return f"  If    {_register(first)}, {words[at + 2]}"
