"""The start-up code of compilers on AArch64, in the notation of `forms`.

From GCC's crtstuff.c and lse-init.c and glibc's crti.S; stubs of GNU ld, gold, lld and mold.
"""

from __future__ import annotations

from .encodings import Encoding, Machine, signed
from .forms_levels import ENCODINGS, LEVELS_AARCH64

_NOP, _BTI, _PACIASP, _AUTIASP, _RET = "d503201f", "d503245f", "d503233f", "d50323bf", "d65f03c0"
_ENTER, _LEAVE = "a9bf7bfd 910003fd", "a8c17bfd"
_FINALIZE = (
    "a9be7bfd 910003fd f9000bf3 {x19_page page} {ldrb flag} 35000140"
    " {[x0] got __cxa_finalize} b4000080 {[x0] handle} {bl plt __cxa_finalize}"
    " {bl form unregister} 52800020 {strb flag} f9400bf3 a8c27bfd"
)
_LSE = (
    "a9bf7bfd d2800200 910003fd {bl plt __getauxval} 53082000 {x1_page page} a8c17bfd"
    " {strb_x1 flag}"
)
_STUB = "{[x16] got} {add any}"


def _each_protection(body: str) -> tuple[str, ...]:
    """Return a function as it is without branch protection, with BTI, and with PAC."""
    first = ((_NOP, ""), (_BTI, ""), (_PACIASP, _AUTIASP))
    return tuple(f"{start} {body} {end} {_RET}" for start, end in first)


_FORMS = {
    # _init and _fini
    "init": _each_protection(f"{_ENTER} {{bl form weak_call}} {_LEAVE}"),
    "fini": _each_protection(f"{_ENTER} {_LEAVE}"),
    # call_weak_fn
    "weak_call": (f"{{[x0] got __gmon_start__}} b4000040 {{b plt __gmon_start__}} {_RET}",),
    "constructor": (
        # frame_dummy
        "{b form register}",
        f"{_BTI} {{b form register}}",
        # init_have_lse_atomics of libgcc
        f"{_LSE} {_RET}",
        f"{_PACIASP} {_LSE} {_AUTIASP} {_RET}",
        LEVELS_AARCH64,
    ),
    # __do_global_dtors_aux
    "destructor": (
        f"{_FINALIZE} {_RET}",
        f"{_BTI} {_FINALIZE} {_RET}",
        f"{_PACIASP} {_FINALIZE} {_AUTIASP} {_RET}",
    ),
    # deregister_tm_clones
    "unregister": (
        "{x0 clones} {x1 clones} eb00003f 540000c0 {[x1] got _ITM_deregisterTMCloneTable}"
        f" b4000061 aa0103f0 d61f0200 {_RET}",
    ),
    # register_tm_clones
    "register": (
        "{x0 clones} {x1 clones} cb000021 d37ffc22 8b810c41 9341fc21 b40000c1"
        f" {{[x2] got _ITM_registerTMCloneTable}} b4000062 aa0203f0 d61f0200 {_RET}",
    ),
    "plt": (
        f"{_STUB} d61f0220",
        f"{_BTI} {_STUB} d61f0220",
        f"{_STUB} d503219f d61f0220",
        "{[x16] got} d61f0220",
        f"{_BTI} {{[x16] got}} d61f0220",
    ),
}


def _page(place: int, code: int) -> int:
    """Return the address of ADRP: 21 bits, of pages of 4 KiB."""
    return (place & ~0xFFF) + (_distance(code) << 12)


def _distance(code: int) -> int:
    return signed(code, 5, 19) * 4 + (code >> 29 & 3)


def _low(code: int) -> int:
    return code >> 10 & 0xFFF


def _pair(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int, int]:
    return 8, first[0] | second[0] << 32, first[1] | second[1] << 32


def _adrp(register: int) -> tuple[int, int]:
    return 0x9F00001F, 0x90000000 | register


def _using(instruction: int, base: int, register: int) -> tuple[int, int]:
    """Return the fixed bits of an instruction with 12 bits of an address."""
    return 0xFFC003FF, instruction | base << 5 | register


def _address(register: int) -> tuple[Encoding, ...]:
    """ADRP and ADD; a linker writes NOP and ADR if that reaches."""
    far = _pair(_adrp(register), _using(0x91000000, register, register))
    near = _pair((0xFFFFFFFF, 0xD503201F), (0x9F00001F, 0x10000000 | register))
    return (
        Encoding(*far, lambda place, code, _: _page(place, code) + _low(code >> 32)),
        Encoding(*near, lambda place, code, _: place + 4 + _distance(code >> 32)),
    )


def _contents(base: int, register: int) -> tuple[Encoding, ...]:
    """ADRP and LDR of 8 bytes."""
    bits = _pair(_adrp(base), _using(0xF9400000, base, register))
    return (Encoding(*bits, lambda place, code, _: _page(place, code) + 8 * _low(code >> 32)),)


def _branch(instruction: int) -> tuple[Encoding, ...]:
    return (Encoding(4, 0xFC000000, instruction, lambda at, code, _: at + 4 * signed(code, 0, 26)),)


def _page_of(register: int) -> tuple[Encoding, ...]:
    return (Encoding(4, *_adrp(register), lambda place, code, _: _page(place, code)),)


def _byte(instruction: int, base: int) -> tuple[Encoding, ...]:
    """LDRB or STRB of w0, in the page."""
    bits = _using(instruction, base, 0)
    return (Encoding(4, *bits, lambda _, code, page: page + _low(code)),)


AARCH64 = Machine(
    relative=1027,
    resolved=1032,
    symbolic=(257, 1025, 1026),
    forms=_FORMS,
    encodings={
        **ENCODINGS,
        "x0": _address(0),
        "x1": _address(1),
        "[x0]": _contents(0, 0),
        "[x1]": _contents(1, 1),
        "[x2]": _contents(2, 2),
        "[x16]": _contents(16, 17),
        "add": (Encoding(4, *_using(0x91000000, 16, 16), lambda _, code, __: _low(code)),),
        "b": _branch(0x14000000),
        "bl": _branch(0x94000000),
        "x1_page": _page_of(1),
        "x19_page": _page_of(19),
        "ldrb": _byte(0x39400000, 19),
        "strb": _byte(0x39000000, 19),
        "strb_x1": _byte(0x39000000, 1),
    },
    is_words=True,
)
