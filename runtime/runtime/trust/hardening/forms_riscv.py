"""The start-up code of compilers on RISC-V (64 bits), in the notation of `forms`.

From GCC's crtstuff.c; stubs of GNU ld, lld and mold.
"""

from __future__ import annotations

from .encodings import Encoding, Machine, signed

_CLEAN_UP = "1141 e022 {s0 flag} 00044783 e406"
_FINALIZE = "{[a5] got __cxa_finalize} c791 {[a0] handle} 9782"
_DONE = "4785 00f40023 60a2 6402 0141 8082"

_FORMS = {
    # frame_dummy
    "constructor": ("{j form register}",),
    # __do_global_dtors_aux: the linker shortens a call if it can
    "destructor": (
        f"{_CLEAN_UP} e385 {_FINALIZE} {{jal form unregister}} {_DONE}",
        f"{_CLEAN_UP} e395 {_FINALIZE} {{call form unregister}} {_DONE}",
    ),
    # deregister_tm_clones
    "unregister": (
        "{a0 clones} {a5 clones} 00a78863 {[a5] got _ITM_deregisterTMCloneTable} c391 8782 8082",
    ),
    # register_tm_clones
    "register": (
        "{a0 clones} {a1 clones} 8d89 4035d793 91fd 95be 8585 c599"
        " {[a5] got _ITM_registerTMCloneTable} c391 8782 8082",
    ),
}


def _far(place: int, code: int) -> int:
    """Return the address of AUIPC and an instruction with 12 bits."""
    return place + (signed(code, 12, 20) << 12) + signed(code, 52, 12)


def _pair(base: int, instruction: int, register: int) -> Encoding:
    """AUIPC to a register, and an instruction that adds 12 bits to it."""
    first = 0x17 | base << 7
    second = instruction | register << 7 | base << 15
    return Encoding(
        8, 0x000FFFFF_00000FFF, second << 32 | first, lambda at, code, _: _far(at, code)
    )


def _address(register: int) -> tuple[Encoding, ...]:
    return (_pair(register, 0x13, register),)  # ADDI


def _contents(register: int) -> tuple[Encoding, ...]:
    return (_pair(register, 0x3003, register),)  # LD


def _jump(place: int, code: int, _page: int) -> int:
    """Return the address of JAL."""
    low, middle, high = code >> 21 & 0x3FF, code >> 20 & 1, code >> 12 & 0xFF
    return place + 2 * (low | middle << 10 | high << 11 | signed(code, 31, 1) << 19)


def _short_jump(place: int, code: int, _page: int) -> int:
    """Return the address of C.J, whose bits are in the order 11, 4, 9:8, 10, 6, 7, 3:1, 5."""
    order = (5, 1, 2, 3, 7, 6, 10, 8, 9, 4, 11)
    number = sum((code >> 2 + index & 1) << bit for index, bit in enumerate(order))
    return place + signed(number, 0, 12)


RISCV = Machine(
    relative=3,
    resolved=58,
    symbolic=(2, 5),
    forms=_FORMS,
    encodings={
        "a0": _address(10),
        "a1": _address(11),
        "a5": _address(15),
        "s0": _address(8),
        "[a0]": _contents(10),
        "[a5]": _contents(15),
        "jal": (Encoding(4, 0xFFF, 0xEF, _jump),),
        "call": (_pair(1, 0x67, 1),),  # AUIPC and JALR
        "j": (
            Encoding(2, 0xE003, 0xA001, _short_jump),
            Encoding(4, 0xFFF, 0x6F, _jump),
            _pair(6, 0x67, 0),
        ),
    },
    is_words=True,
)
