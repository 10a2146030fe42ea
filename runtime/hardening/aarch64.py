"""The instructions of AArch64 of the start-up code of compilers (Arm's manual, DDI 0487)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .walk import CALLER, Entry, Frame, OwnCodeError, Slot, State, check_frame

if TYPE_CHECKING:
    from .walk import Value, Walk

_LR, _SP = 30, 31
_KEPT = tuple(range(19, 30))
_PAGE = 4096
_WORD = 8


class AArch64:
    """AArch64, AAPCS64 calling convention."""

    kept = _KEPT
    relative, resolved, symbolic = 1027, 1032, (257, 1025, 1026)

    def enter(self) -> State:
        """Return the state at the first instruction."""
        registers: list[Value] = [Entry(i) for i in range(32)]
        registers[_LR], registers[_SP] = CALLER, Frame(0)
        return State(registers, {})

    def call_outside(self, state: State) -> Value:
        """Forget what a function may change, and return where it returns to."""
        target = state.registers[_LR]
        for register in range(_LR + 1):
            if register not in _KEPT:
                state.registers[register] = None
        return target

    def stack_pointer(self, state: State) -> Value:
        """Return the stack pointer after the return."""
        return state.registers[_SP]

    def step(self, walk: Walk, place: int, state: State) -> list[Value]:
        """Run one instruction on the state; return where it may continue."""
        code = walk.code(place)
        if len(code) < 4 or place % 4:
            raise OwnCodeError(f"{place:#x} is no code")
        word = int.from_bytes(code[:4], "little")
        targets = _jump(word, place, state)
        if targets is not None:
            return targets
        if not (_is_nop(word) or _compute(word, place, state) or _access(word, walk, state)):
            raise OwnCodeError(f"{place:#x}: {word:08x} is not in a compiler's start-up code")
        return [place + 4]


def _signed(value: int, bits: int) -> int:
    return value - (value >> bits - 1 << bits)


def _is_nop(word: int) -> bool:
    """Return True for hints: nop, bti, and the signing of the return address."""
    return word & 0xFFFFF01F == 0xD503201F


def _jump(word: int, place: int, state: State) -> list[Value] | None:
    """Jumps, calls and returns; None for other instructions."""
    registers = state.registers
    near = place + 4 * _signed(word & 0x3FFFFFF, 26)
    if word >> 26 == 0b000101:  # b
        return [near]
    if word >> 26 == 0b100101:  # bl
        registers[_LR] = place + 4
        return [near]
    if word & 0x7E000000 == 0x34000000 or word & 0xFF000010 == 0x54000000:  # cbz, cbnz, b.cond
        return [place + 4 * _signed(word >> 5 & 0x7FFFF, 19), place + 4]
    if word & 0x7E000000 == 0x36000000:  # tbz, tbnz
        return [place + 4 * _signed(word >> 5 & 0x3FFF, 14), place + 4]
    if word in (0xD65F0BFF, 0xD65F0FFF):  # retaa, retab
        return [registers[_LR]]
    if word & 0xFFFFFC1F in (0xD61F0000, 0xD63F0000, 0xD65F0000):  # br, blr, ret
        if (which := word >> 5 & 31) == 31:
            raise OwnCodeError(f"{place:#x}: jumps to 0")
        target = registers[which]
        if word & 0xFFFFFC1F == 0xD63F0000:
            registers[_LR] = place + 4
        return [target]
    return None


def _compute(word: int, place: int, state: State) -> bool:
    """Instructions that only change a register; False for others."""
    rd, rn, registers = word & 31, word >> 5 & 31, state.registers
    if word & 0x1F000000 == 0x10000000:  # adr, adrp
        offset = _signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
        is_page = word >> 31
        target = place // _PAGE * _PAGE + offset * _PAGE if is_page else place + offset
        _set(state, rd, target)
    elif word & 0x1F800000 == 0x11000000:  # add, sub, with an immediate
        change = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
        value = _moved(registers[rn], -change if word >> 30 & 1 else change)
        sets_flags = word >> 29 & 1
        if rd == _SP and not sets_flags:
            check_frame(value if word >> 31 else None)
            registers[_SP] = value
        else:
            _set(state, rd, value if word >> 31 else None)
    elif word & 0xFFE0FFE0 == 0xAA0003E0:  # mov
        source = word >> 16 & 31
        _set(state, rd, 0 if source == 31 else registers[source])
    elif word & 0x1C000000 == 0x10000000:  # other immediates: logical, move wide, bit fields
        if rd == _SP and word & 0x1F800000 == 0x12000000 and word >> 29 & 3 != 3:
            raise OwnCodeError(f"{place:#x}: moves the stack pointer out of its frame")
        _set(state, rd, None)
    elif word & 0x0E000000 == 0x0A000000:  # registers only
        if rd == _SP and word & 0x1F200000 == 0x0B200000 and not word >> 29 & 1:
            raise OwnCodeError(f"{place:#x}: moves the stack pointer out of its frame")
        _set(state, rd, None)
    else:
        return False
    return True


def _moved(value: Value, change: int) -> Value:
    if isinstance(value, Frame):
        return Frame(value.offset + change)
    return value + change if isinstance(value, int) else None


def _set(state: State, register: int, value: Value) -> None:
    """Set a register; 31 is the one that is always 0."""
    if register != 31:
        state.registers[register] = value


def _access(word: int, walk: Walk, state: State) -> bool:
    """Load or store one or two registers; False for other instructions."""
    rn, is_load = word >> 5 & 31, word >> 22 & 1
    if word & 0x3A000000 == 0x28000000 and word >> 30 == 2 and not word >> 26 & 1:
        return _access_pair(word, walk, state)
    if word & 0x3F800000 in (0x39000000, 0x39800000) and not (word >> 23 & 1):
        nbytes = 1 << (word >> 30)
        _move_one(word & 31, state.registers[rn], (word >> 10 & 0xFFF) * nbytes, nbytes,
                  bool(is_load), walk, state)  # fmt: skip
        return True
    if word & 0xFFA00400 == 0xF8000400:  # 8 bytes, before or after the address changes
        change = _signed(word >> 12 & 0x1FF, 9)
        is_before = word >> 11 & 1
        if is_before:
            _move_base(rn, change, state)
        _move_one(word & 31, state.registers[rn], 0, _WORD, bool(is_load), walk, state)
        if not is_before:
            _move_base(rn, change, state)
        return True
    return False


def _access_pair(word: int, walk: Walk, state: State) -> bool:
    """Load or store two registers of 8 bytes: stp, ldp."""
    rn, is_load, mode = word >> 5 & 31, bool(word >> 22 & 1), word >> 23 & 3
    if mode == 0:
        return False
    change = _WORD * _signed(word >> 15 & 0x7F, 7)
    if mode == 3:
        _move_base(rn, change, state)
    base, offset = state.registers[rn], change if mode == 2 else 0
    for index, register in enumerate((word & 31, word >> 10 & 31)):
        _move_one(register, base, offset + _WORD * index, _WORD, is_load, walk, state)
    if mode == 1:
        _move_base(rn, change, state)
    return True


def _move_base(register: int, change: int, state: State) -> None:
    value = _moved(state.registers[register], change)
    if register == _SP:
        check_frame(value)
    state.registers[register] = value


def _move_one(
    register: int, base: Value, offset: int, nbytes: int, is_load: bool, walk: Walk, state: State
) -> None:
    """Load or store one register, in the function's frame or in the library."""
    place = _moved(base, offset)
    if isinstance(place, Frame):
        check_frame(Frame(place.offset + nbytes))
        _in_frame(register, place.offset, nbytes, is_load, state)
    elif not isinstance(place, int):
        raise OwnCodeError("uses memory at an address that is computed")
    elif is_load:
        _set(state, register, Slot(place) if nbytes == _WORD else None)
    else:
        walk.store(place, nbytes)


def _in_frame(register: int, offset: int, nbytes: int, is_load: bool, state: State) -> None:
    is_word = nbytes == _WORD and offset % _WORD == 0
    if is_load:
        _set(state, register, state.stack.get(offset) if is_word else None)
        return
    for word in range(offset // _WORD * _WORD, offset + nbytes, _WORD):
        state.stack[word] = None
    if is_word:
        state.stack[offset] = 0 if register == 31 else state.registers[register]
