"""Start-up code by known forms: the corpus of compilers, and forms with hostile addresses."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ....stress import start_up_mutants
from ....support import needs
from ....support.hardened import compiled, refused

CORPUS = sorted(start_up_mutants.CORPUS.glob("*.so"))

# __do_global_dtors_aux and what it calls, as GCC writes them.
X86 = """
.text
stub: jmp *slot(%rip)
clean: lea {clones}(%rip), %rdi
  lea list(%rip), %rax
  cmp %rdi, %rax
  je 1f
  mov _ITM_deregisterTMCloneTable@GOTPCREL(%rip), %rax
  test %rax, %rax
  je 1f
  jmp *%rax
  .byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0
1: ret
start: endbr64
  cmpb $0, {flag}(%rip)
  jne 2f
  push %rbp
  cmpq $0, {slot}(%rip)
  mov %rsp, %rbp
  je 1f
  mov {handle}(%rip), %rdi
  call {stub}
1: call {clean}
  movb $1, {stored}(%rip)
  pop %rbp
  ret
  nopl (%rax)
2: ret
evil: ret
.globl own
.hidden own
own: ret
.section .fini_array,"aw"
.quad start
.data
handle: .quad handle
other: .quad stub
slot: .quad __cxa_finalize
evil_slot: .quad {symbol}
both: .quad __cxa_finalize + 8
list: .quad 1
.bss
flag: .skip 8
flag2: .skip 8
.weak _ITM_deregisterTMCloneTable
.section .note.GNU-stack,"",%progbits
"""
HOLES = {
    "clones": "list", "flag": "flag", "stored": "flag", "slot": "slot", "handle": "handle",
    "stub": "stub", "clean": "clean", "symbol": "system",
}  # fmt: skip
UNKNOWN = "is not the start-up code of a known compiler"
HOSTILE = [
    ({}, None),
    ({"clones": "flag"}, UNKNOWN),  # the compared addresses differ: it would call
    ({"stored": "flag2"}, UNKNOWN),
    ({"flag": "list", "stored": "list"}, "which is not a zeroed variable"),
    ({"flag": "evil", "stored": "evil"}, "which is not a variable"),
    ({"slot": "evil_slot"}, "calls 'system'"),
    ({"slot": "list"}, "calls what is stored at 0x"),
    ({"slot": "both"}, "calls '__cxa_finalize'"),
    ({"slot": "other"}, "calls another address than that of '__cxa_finalize'"),
    ({"handle": "other"}, "finalises another library than itself"),
    ({"handle": "flag"}, "finalises another library than itself"),
    ({"stub": "evil"}, UNKNOWN),
    ({"stub": "clean"}, UNKNOWN),
    ({"clean": "evil"}, UNKNOWN),
    ({"clean": "start"}, UNKNOWN),
]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_start_up_code_of_compilers_is_accepted(path: Path) -> None:
    """Of each compiler, linker and option of index.json."""
    assert refused(path) == []


def test_the_corpus_is_complete() -> None:
    """Each library has its command, and every machine and linker is there."""
    made = json.loads((start_up_mutants.CORPUS / "index.json").read_text())
    assert [*made] == [path.name for path in CORPUS]
    for word in ("gcc", "musl-gcc", "aarch64", "riscv64", "compiler-rt", "bfd", "gold", "lld"):
        assert any(word in command for command in made.values())


@pytest.mark.parametrize(("holes", "reason"), HOSTILE, ids=lambda value: str(value))
def test_the_addresses_in_a_form_are_checked(
    tmp_path: Path, holes: dict[str, str], reason: str | None
) -> None:
    """A form is accepted only if each address points to what a compiler has there."""
    text = X86.format(**{**HOLES, **holes})
    path = compiled(text, tmp_path / "a.so", "-nostartfiles", "-m64", suffix="s")
    found = refused(path)
    if reason is None:
        assert found == []
    else:
        ((rule, message),) = found
        assert rule == "destructors"
        assert reason in message


def test_mutants_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    """Or have the instructions of a compiler again; make stress has a hundred thousand."""
    needs.program("llvm-objdump")
    needs.program("clang")
    assert start_up_mutants.main(1000, 31) == 0
    assert "1000 mutants" in capfd.readouterr().out


def test_a_function_after_many_is_found(tmp_path: Path) -> None:
    """Also in packed relocations, and the number of functions has a limit."""
    start = X86.format(**HOLES)
    evil = f'{start}.section .fini_array,"aw"\n.quad evil\n'
    for options in ((), ("-Wl,-z,pack-relative-relocs",)):
        path = compiled(evil, tmp_path / "a.so", "-nostartfiles", *options, suffix="s")
        ((rule, message),) = refused(path)
        assert (rule, "DT_FINI_ARRAY[1]" in message) == ("destructors", True)
    many = f'{start}.section .fini_array,"aw"\n' + ".quad start\n" * 40
    ((_, message),) = refused(compiled(many, tmp_path / "b.so", "-nostartfiles", suffix="s"))
    assert "DT_FINI_ARRAY[16]: more than 16 functions" in message


def test_unwinding_tables_of_other_code_are_refused(tmp_path: Path) -> None:
    """compiler-rt registers its tables for the process: other exceptions would follow them."""
    made = json.loads((start_up_mutants.CORPUS / "index.json").read_text())
    name = next(name for name, command in made.items() if "compiler-rt" in command)
    data = bytearray((start_up_mutants.CORPUS / name).read_bytes())
    words = [needs.program("readelf"), "-SW", start_up_mutants.CORPUS / name]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    (start,) = re.findall(r"\.eh_frame +PROGBITS +\w+ (\w+)", shown)
    at, entries = int(start, 16), []
    while nbytes := int.from_bytes(data[at : at + 4], "little"):
        entries.append(at)
        at += nbytes + 4
    fde = entries[-1]  # the first ones are before the table that is registered
    cie = fde + 4 - int.from_bytes(data[fde + 4 : fde + 8], "little")
    for place, change in ((fde + 8, 0x100000), (fde + 12, 0x100000), (cie + 9, 1)):
        mutant = tmp_path / "a.so"
        number = int.from_bytes(data[place : place + 4], "little") + change & 0xFFFFFFFF
        mutant.write_bytes(data[:place] + number.to_bytes(4, "little") + data[place + 4 :])
        assert "for unwinding other code" in refused(mutant)[0][1]
