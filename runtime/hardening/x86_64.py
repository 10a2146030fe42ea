"""The instructions of x86-64 of the start-up code of compilers (Intel's manual, volume 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .walk import CALLER, Entry, Frame, OwnCodeError, Slot, State, check_frame

if TYPE_CHECKING:
    from .walk import Value, Walk

_RSP, _RBP = 4, 5
_KEPT = (3, _RBP, 12, 13, 14, 15)
_PREFIXES = {0x66, 0xF2, 0xF3, 0x2E, 0x3E}
_NOPS = {0x90, 0x0F1E, 0x0F1F}  # endbr64 is one of them
_JUMPS = {0xC3, 0xE8, 0xE9, 0xEB, 0xFF, *range(0x70, 0x80), *range(0x0F80, 0x0F90)}
_COMPARES = {0x38, 0x39, 0x3A, 0x3B, 0x84, 0x85}
_TO_MEMORY = {0x01, 0x09, 0x21, 0x29, 0x31}  # add, or, and, sub, xor: r/m, r
_TO_REGISTER = {0x03, 0x0B, 0x23, 0x2B, 0x33}  # the same: r, r/m

# The bytes of the immediate operand after a ModRM byte, and after none.
_WITH_MODRM = {
    **dict.fromkeys(_COMPARES | _TO_MEMORY | _TO_REGISTER, 0),
    **dict.fromkeys((0x88, 0x89, 0x8B, 0x8D, 0xD1, 0xFF, 0x0F1E, 0x0F1F, 0x0FB6), 0),
    **dict.fromkeys((0x80, 0x83, 0xC1, 0xC6), 1),
    **dict.fromkeys((0x81, 0xC7), 4),
}
_WITHOUT = {
    **dict.fromkeys((*range(0x50, 0x60), 0x90, 0xC3, 0xC9), 0),
    **dict.fromkeys((*range(0x70, 0x80), 0xEB, 0x3C, 0xA8), 1),
    **dict.fromkeys((*range(0x0F80, 0x0F90), 0xE8, 0xE9, 0x3D, 0xA9, *range(0xB8, 0xC0)), 4),
}


class _Instruction(NamedTuple):
    """One instruction: `memory` is the address that it reads or writes, None if it is another."""

    opcode: int
    wide: bool
    register: int
    operand: int | None  # the register of r/m; None for memory
    memory: int | None
    immediate: int
    end: int


class X86:
    """x86-64, System V calling convention."""

    kept = _KEPT
    relative, resolved, symbolic = 8, 37, (1, 6, 7)

    def enter(self) -> State:
        """Return the state at the first instruction."""
        registers: list[Value] = [Entry(i) for i in range(16)]
        registers[_RSP] = Frame(0)
        return State(registers, {0: CALLER})

    def call_outside(self, state: State) -> Value:
        """Forget what a function may change, and return where it returns to."""
        for register in range(16):
            if register not in (*_KEPT, _RSP):
                state.registers[register] = None
        return _return(state)

    def stack_pointer(self, state: State) -> Value:
        """Return the stack pointer after the return; the caller's address was taken from it."""
        pointer = state.registers[_RSP]
        return Frame(pointer.offset - 8) if isinstance(pointer, Frame) else None

    def step(self, walk: Walk, place: int, state: State) -> list[Value]:
        """Run one instruction on the state; return where it may continue."""
        try:
            found = _decode(walk.code(place), place)
        except IndexError:
            raise OwnCodeError(f"{place:#x} is no code") from None
        if found is None:
            code = walk.code(place)[:4].hex(" ")
            raise OwnCodeError(f"{place:#x}: {code} ... is not in a compiler's start-up code")
        if found.opcode in _JUMPS:
            return _jump(found, state, place)
        _change(found, state, walk, place)
        return [found.end]


def _decode(code: bytes, place: int) -> _Instruction | None:
    """Read one instruction; None if it is not one of those that are known here."""
    at, prefixes = 0, set()
    while code[at] in _PREFIXES:
        prefixes.add(code[at])
        at += 1
    rex = code[at] if code[at] & 0xF0 == 0x40 else 0
    at += bool(rex)
    opcode = code[at]
    at += 1
    if opcode == 0x0F:
        opcode = 0x0F00 | code[at]
        at += 1
    if prefixes and opcode not in _NOPS and (opcode not in _JUMPS or 0x66 in prefixes):
        return None
    wide = bool(rex & 8)
    register, memory = 0, None
    operand: int | None = opcode & 7 | (rex & 1) << 3
    if opcode in _WITH_MODRM:
        nbytes = _WITH_MODRM[opcode]
        modrm, at = code[at], at + 1
        register = modrm >> 3 & 7 | (rex & 4) << 1
        operand, memory, at = _operand(code, at, modrm, rex, place + nbytes)
    elif opcode in _WITHOUT:
        nbytes = 8 if wide and 0xB8 <= opcode < 0xC0 else _WITHOUT[opcode]
    else:
        return None
    if at + nbytes > len(code):
        raise IndexError
    immediate = int.from_bytes(code[at : at + nbytes], "little", signed=True)
    return _Instruction(opcode, wide, register, operand, memory, immediate, place + at + nbytes)


def _operand(
    code: bytes, at: int, modrm: int, rex: int, place: int
) -> tuple[int | None, int | None, int]:
    """Return the register, or the address if it counts from the instruction, and the end."""
    mode, low = modrm >> 6, modrm & 7
    if mode == 3:
        return low | (rex & 1) << 3, None, at
    base = code[at] & 7 if low == 4 else low
    at += low == 4
    nbytes = 1 if mode == 1 else 4 if mode == 2 or base == 5 else 0
    offset = int.from_bytes(code[at : at + nbytes], "little", signed=True)
    at += nbytes
    return None, place + at + offset if (mode, low) == (0, 5) else None, at


def _jump(found: _Instruction, state: State, place: int) -> list[Value]:
    """Jumps, calls and returns."""
    target: Value = found.end + found.immediate
    is_call = found.opcode == 0xE8
    if found.opcode == 0xC3:
        return [_return(state)]
    if found.opcode == 0xFF:
        kind = found.register & 7
        if found.operand is not None:
            target = state.registers[found.operand]
        else:
            target = Slot(found.memory) if found.memory is not None else None
        if kind == 6:
            _push(state, target)
            return [found.end]
        if kind not in (2, 4):
            raise OwnCodeError(f"{place:#x}: not in a compiler's start-up code")
        is_call = kind == 2
    if is_call:
        _push(state, found.end)
    is_conditional = 0x70 <= found.opcode < 0x80 or found.opcode >= 0x0F80
    return [target, found.end] if is_conditional else [target]


def _change(found: _Instruction, state: State, walk: Walk, place: int) -> None:
    """Run an instruction that continues with the next."""
    opcode, registers = found.opcode, state.registers
    if opcode in _NOPS or opcode in (0x3C, 0x3D, 0xA8, 0xA9):
        return
    if 0x50 <= opcode < 0x60:
        which = found.operand or 0
        if opcode < 0x58:
            _push(state, registers[which])
        else:
            _set(state, which, _pop(state))
        return
    if opcode == 0xC9:  # leave
        _set(state, _RSP, registers[_RBP])
        _set(state, _RBP, _pop(state))
        return
    if 0xB8 <= opcode < 0xC0:
        _set(state, found.operand or 0, found.immediate if found.wide else None)
        return
    if opcode == 0x8D and found.operand is None:
        _set(state, found.register, found.memory if found.wide else None)
        return
    if found.operand is None and found.memory is None:
        raise OwnCodeError(f"{place:#x}: uses memory at an address that is computed")
    _with_operand(found, state, walk, place)


def _with_operand(found: _Instruction, state: State, walk: Walk, place: int) -> None:
    """Run an instruction with a register, or an address of the library, as r/m."""
    opcode, registers, kind = found.opcode, state.registers, found.register & 7
    if opcode in _COMPARES or (opcode in (0x80, 0x81, 0x83) and kind == 7):
        return
    if opcode == 0x8B or opcode == 0x0FB6 or opcode in _TO_REGISTER:
        value: Value = None
        if opcode == 0x8B and found.wide:
            value = Slot(found.memory or 0) if found.operand is None else registers[found.operand]
        _set(state, found.register, value)
    elif found.operand is None and found.memory is not None:
        if opcode not in (0x88, 0x89, 0xC6, 0xC7):
            raise OwnCodeError(f"{place:#x}: not in a compiler's start-up code")
        nbytes = 1 if opcode in (0x88, 0xC6) else 8 if found.wide else 4
        walk.store(found.memory, nbytes)
    elif found.operand is not None and opcode in (0x81, 0x83) and kind in (0, 5) and found.wide:
        pointer = registers[found.operand]
        change = found.immediate if kind == 0 else -found.immediate
        moved = Frame(pointer.offset + change) if isinstance(pointer, Frame) else None
        _set(state, found.operand, moved)
    elif found.operand is not None and opcode in (0x81, 0x83, 0xC1, 0xD1, *_TO_MEMORY):
        _set(state, found.operand, None)
    elif found.operand is not None and opcode in (0x89, 0xC7):
        value = registers[found.register] if opcode == 0x89 else None
        _set(state, found.operand, value if found.wide else None)
    else:
        raise OwnCodeError(f"{place:#x}: not in a compiler's start-up code")


def _set(state: State, register: int, value: Value) -> None:
    """Set a register; the stack pointer stays in the function's own frame."""
    if register == _RSP:
        check_frame(value)
    state.registers[register] = value


def _push(state: State, value: Value) -> None:
    pointer = state.registers[_RSP]
    assert isinstance(pointer, Frame)  # _set keeps it one
    _set(state, _RSP, Frame(pointer.offset - 8))
    state.stack[pointer.offset - 8] = value


def _pop(state: State) -> Value:
    pointer = state.registers[_RSP]
    assert isinstance(pointer, Frame)  # _set keeps it one
    _set(state, _RSP, Frame(pointer.offset + 8))
    return state.stack.get(pointer.offset)


def _return(state: State) -> Value:
    pointer = state.registers[_RSP]
    assert isinstance(pointer, Frame)  # _set keeps it one
    state.registers[_RSP] = Frame(pointer.offset + 8)
    return state.stack.get(pointer.offset)
