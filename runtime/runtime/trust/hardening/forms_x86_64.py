"""The start-up code of compilers on x86-64, in the notation of `forms`.

GCC's crtstuff.c, glibc's and musl's crti.o, compiler-rt's crtbegin.c; stubs of GNU ld, gold, lld
and mold.
"""

from __future__ import annotations

from .encodings import Encoding, Machine, signed
from .forms_levels import ENCODINGS, LEVELS_X86_64

_INIT = (
    "4883ec08 488b05 {rel got __gmon_start__} 4885c0 7402 ffd0 4883c408 c3",
    "4883ec08 488b05 {rel got __gmon_start__} 4885c0 7405 e8 {rel plt __gmon_start__} 4883c408 c3",
    "4883ec08 4883c408 c3",
)
_MUSL = "50 58 c3"
_CLONES = "488d3d {rel clones} 488d05 {rel clones} 4839f8"
_UNREGISTER = "488b05 {rel got _ITM_deregisterTMCloneTable} 4885c0"
_SIZE = "488d3d {rel clones} 488d35 {rel clones} 4829fe"
_REGISTER = "488b05 {rel got _ITM_registerTMCloneTable} 4885c0"
_FINALIZE = "55 48833d {rel1 got __cxa_finalize} 00 4889e5 740c"
_HANDLES = ("488b3d {rel handle}", "488d3d {rel own}")
_UNREGISTERED = "e8 {rel form unregister} c605 {rel1 flag} 01 5d c3"

_TEXTS = {
    # _init and _fini: prologue and epilogue of crti.o and crtn.o.
    "init": (*_INIT, *(f"f30f1efa {text}" for text in _INIT), _MUSL),
    "fini": (_INIT[-1], f"f30f1efa {_INIT[-1]}", _MUSL),
    # frame_dummy
    "constructor": (
        "f30f1efa e9 {rel form register}",
        "e9 {rel form register}",
        # __do_init of compiler-rt
        "55 4889e5 f605 {rel1 flag} 01 0f8405000000 e92f000000 c605 {rel1 flag} 01"
        " 488b05 {rel got __register_frame_info} 4885c0 0f8418000000 e900000000"
        " 488d3d {rel frames} 488d35 {rel object} e8 {rel plt __register_frame_info} 5d c3",
        LEVELS_X86_64,
    ),
    # __do_global_dtors_aux
    "destructor": (
        *(
            f"{start} {_FINALIZE} {handle} e8 {{rel plt __cxa_finalize}} {_UNREGISTERED} {end} c3"
            for start, end in (
                ("f30f1efa 803d {rel1 flag} 00 752b", "0f1f00"),
                ("803d {rel1 flag} 00 752f", "0f1f8000000000"),
            )
            for handle in _HANDLES
        ),
        # __do_fini of compiler-rt
        "55 4889e5 f605 {rel1 flag} 01 0f8405000000 e949000000 c605 {rel1 flag} 01"
        " 488b05 {rel got __cxa_finalize} 4885c0 0f8411000000 e900000000"
        " 488b3d {rel handle} e8 {rel plt __cxa_finalize}"
        " 488b05 {rel got __deregister_frame_info} 4885c0 0f8411000000 e900000000"
        " 488d3d {rel frames} e8 {rel plt __deregister_frame_info} 5d c3",
    ),
    # deregister_tm_clones
    "unregister": (f"{_CLONES} 7415 {_UNREGISTER} 7409 ffe0 0f1f8000000000 c3",),
    # register_tm_clones; GCC before 10 divides first
    "register": tuple(
        f"{_SIZE} {half} 4801c6 48d1fe 7414 {_REGISTER} 7408 ffe0 660f1f440000 c3"
        for half in ("4889f0 48c1ee3f 48c1f803", "48c1fe03 4889f0 48c1e83f")
    ),
    "plt": (
        "ff25 {rel got}",
        "f30f1efa ff25 {rel got}",
        "f30f1efa f2ff25 {rel got}",
        "f2ff25 {rel got}",
        "f30f1efa 41bb {imm any} ff25 {rel got}",
    ),
}

X86_64 = Machine(
    relative=8,
    resolved=37,
    symbolic=(1, 6, 7),
    forms=_TEXTS,
    encodings={
        **ENCODINGS,
        "rel": (Encoding(4, 0, 0, lambda place, code, _: place + 4 + signed(code, 0, 32)),),
        "rel1": (Encoding(4, 0, 0, lambda place, code, _: place + 5 + signed(code, 0, 32)),),
        "imm": (Encoding(4, 0, 0, lambda _, code, __: code),),
    },
    is_words=False,
)
