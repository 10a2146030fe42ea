"""Constructors that look like a compiler's, in assembly of x86-64 and AArch64."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ...support import needs
from ...support.hardened import compiled, refused

HEAD = (
    ".text\n.type frame_dummy, %function\nframe_dummy:\n{body}\n"
    '.section .init_array,"aw"\n.quad frame_dummy\n'
    '.section .data,"aw"\nown: .quad evil\nword: .quad 0\n.section .bss\nzeros: .skip 64\n'
    ".text\nevil: ret\n.weak _ITM_registerTMCloneTable\n.weak __gmon_start__\n"
    '.section .note.GNU-stack,"",%progbits\n'
)
TM = "mov _ITM_registerTMCloneTable@GOTPCREL(%rip), %rax\n"
CALL_TM = f"{TM}test %rax, %rax\nje 9f\ncall *%rax\n9:\n"
# The reason, by the body of the function; None if it is accepted.
X86 = {
    "jmp *%rdi": "jumps to an address that is computed or read",
    "lea system@GOTPCREL(%rip), %rax\njmp *(%rax)": "jumps to an address that is computed or read",
    "call system@PLT\nret": "calls 'system'",
    "mov system@GOTPCREL(%rip), %rax\njmp *%rax": "calls 'system'",
    "push $0x1234\nret": "is not in a compiler's start-up code",
    "push %rdi\nret": "jumps to an address that is computed or read",
    "pop %rax\npush %rdi\npush %rax\nret": "moves the stack pointer out of its frame",
    f"sub $8, %rsp\n{CALL_TM}ret": "jumps to an address that is computed or read",
    f"sub $0x10000000, %rsp\n{CALL_TM}add $0x10000000, %rsp\nret": "pointer out of its frame",
    f"{CALL_TM}mov %rdi, %rbx\nret": "returns with other registers than it was called with",
    f"{CALL_TM}mov %rdi, (%rsi)\nret": "uses memory at an address that is computed",
    f"{CALL_TM}mov %rdi, (%rsp)\nret": "uses memory at an address that is computed",
    f"{CALL_TM}mov %rdi, word(%rip)\nret": "which is not a zeroed variable",
    f"{CALL_TM}movb $1, frame_dummy(%rip)\nret": "which is no variable",
    f"{CALL_TM}mov %rdi, zeros(%rip)\njmp *zeros(%rip)": "calls what is stored at 0x",
    f"{CALL_TM}1: jmp 1b": None,  # it ends nowhere, and calls nothing else
    f"{CALL_TM}syscall\nret": "is not in a compiler's start-up code",
    f"{CALL_TM}cpuid\nret": "is not in a compiler's start-up code",
    f"{CALL_TM}jmp frame_dummy + 1": "jumps to an address that is computed or read",
    f"{CALL_TM}lea evil(%rip), %rax\ncall *%rax\nret": None,  # followed: it returns
    f"{CALL_TM}call *own(%rip)\nret": None,  # followed too, by its relocation
    f"{CALL_TM}xor %edi, %edi\njmp zeros": "is no code",
    "test %rdi, %rdi\nje 1f\nret\n1: call *%rdx\nret": "that is computed or read",
    "ret": "calls nothing of a compiler's runtime",
}
AARCH64 = {
    "br x0": "jumps to an address that is computed or read",
    "b system": "calls 'system'",
    "mov x30, x0\nret": "jumps to an address that is computed or read",
    "bl __gmon_start__\nret": "jumps to an address that is computed or read",
    "stp x29, x30, [sp, #-16]!\nbl __gmon_start__\nldp x29, x30, [sp], #16\nret": None,
    "stp x29, x30, [sp, #-16]!\nstr x0, [sp, #8]\nldp x29, x30, [sp], #16\nret": "or read",
    "str x0, [sp, #16]\nb __gmon_start__": "moves the stack pointer out of its frame",
    "mov x19, x0\nb __gmon_start__": "returns with other registers than it was called with",
    "adrp x1, word\nstr x0, [x1, #:lo12:word]\nb __gmon_start__": "is not a zeroed variable",
    "svc #0\nb __gmon_start__": "is not in a compiler's start-up code",
    "mrs x0, tpidr_el0\nb __gmon_start__": "is not in a compiler's start-up code",
    "str x0, [x1]\nb __gmon_start__": "uses memory at an address that is computed",
}


@pytest.mark.parametrize("body", X86)
def test_x86_64(tmp_path: Path, body: str) -> None:
    """The name does not count; code that only calls the compiler's runtime is accepted."""
    subprocess.run([needs.program("as"), "--version"], check=True, capture_output=True)
    _compare(tmp_path, body, X86[body], "gcc", "-m64")


@pytest.mark.parametrize("body", AARCH64)
def test_aarch64(tmp_path: Path, body: str) -> None:
    """The same there."""
    _compare(tmp_path, body, AARCH64[body], needs.program("aarch64-linux-gnu-gcc"))


def _compare(tmp_path: Path, body: str, reason: str | None, compiler: str, *more: str) -> None:
    text = HEAD.format(body=body)
    options = ("-nostartfiles", *more)
    path = compiled(text, tmp_path / "a.so", *options, compiler=compiler, suffix="s")
    found = refused(path)
    if reason is None:
        assert found == []
    else:
        ((rule, message),) = found
        assert rule == "constructors"
        assert reason in message


def test_a_hidden_one_among_many(tmp_path: Path) -> None:
    """Functions of a compiler do not hide another one after them, nor packed relocations."""
    text = HEAD.format(body=f"{CALL_TM}ret") + '.section .init_array,"aw"\n'
    text += ".quad frame_dummy\n" * 40 + ".quad other\n.text\nother: call system@PLT\nret\n"
    for packed in ((), ("-Wl,-z,pack-relative-relocs",)):
        ((rule, message),) = refused(
            compiled(text, tmp_path / "a.so", "-nostartfiles", *packed, suffix="s")
        )
        assert rule == "constructors"
        assert "DT_INIT_ARRAY[16]: more than 16 functions" in message
    few = text.replace(".quad frame_dummy\n" * 40, ".quad frame_dummy\n" * 4)
    ((_, message),) = refused(
        compiled(few, tmp_path / "b.so", "-nostartfiles", "-Wl,-z,pack-relative-relocs", suffix="s")
    )
    assert "DT_INIT_ARRAY[5]" in message
    assert "calls 'system'" in message
