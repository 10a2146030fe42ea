"""Change instructions of start-up code: what is accepted is start-up code of a compiler again.

python tests/stress/start_up_mutants.py [COUNT] [SEED]

An instruction of a library of tests/data/start_up is replaced by another one, exchanged with its
neighbour, or moved back by an insertion; the others are assembled by clang. An accepted mutant must
have the instructions of one of these libraries, or of `ELSEWHERE`, as llvm-objdump reads them.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runtime.trust.hardening.forms import machines, relative_value
from runtime.trust.hardening.image import Image
from runtime.trust.hardening.rules import Rules, called_functions, violations

CORPUS = Path(__file__).parents[1] / "data" / "start_up"
# Instructions that an attacker could use, by the machine as llvm-objdump names it.
INSERTED = {
    "x86-64": """nop; ret; int3; endbr64; xchg %rax, %r8; xchg %ax, %ax; push %rax; pop %rax
        push %rdi; pop %rbp; leave; sub $8, %rsp; add $8, %rsp; mov %rdi, %rsp; mov %rsp, %rbp
        jmp *%rax; jmp *%rdi; call *%rdx; jmp *(%rsp); syscall; cpuid; hlt; ud2; xbegin . + 6
        mov %rax, (%rdi); mov (%rdi), %rax; mov $1, %eax; xor %edi, %edi; lea 8(%rip), %rax
        lea 8(%rip), %rdi; mov 8(%rip), %rax; movb $1, 8(%rip); cmpb $0, 8(%rip); test %rax, %rax
        je . + 4; jne . + 4; jmp . + 4; call . + 5; jmp *8(%rip); call *8(%rip); jmp . - 16
        rep stosb; repz ret; popfq; addr32 call . + 6; movabs $0x1122334455667788, %rax""",
    "aarch64": """nop; ret; br x0; blr x0; mov x30, x0; mov sp, x0; svc #0; hlt #0; paciasp; autiasp
        stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16; ldp x29, x30, [x0]; str x0, [sp]
        mov x0, #1; adr x0, . + 8; adr x1, . + 8; adrp x0, .; adrp x1, .; adrp x16, .
        ldr x0, [x0, #8]; ldr x17, [x16, #8]; add x16, x16, #8; strb w0, [x19, #8]
        strb w0, [x1, #8]; add x0, x0, #8
        ldrb w0, [x19, #8]; cbz x0, . + 8; cbnz w0, . + 8; b . + 4; bl . + 4; b.eq . + 8; ret x1
        hint #34; hint #36; mrs x0, tpidr_el0; eor x0, x0, x0""",
    "riscv": """nop; ret; jr a0; jalr a0; mv ra, a0; mv sp, a0; ecall; ebreak; li a5, 1; li a0, 1
        addi sp, sp, -16; addi sp, sp, 16; sd ra, 8(sp); ld ra, 8(sp); sd s0, 0(sp); ld s0, 0(sp)
        auipc a0, 1; auipc a5, 1; addi a0, a0, 8; ld a0, 8(a0); ld a5, 8(a5); sb a5, 0(s0)
        lbu a5, 0(s0); beqz a5, . + 8; bnez a5, . + 8; j . + 4; jal . + 4; jr a5; jalr a5""",
}
# The address in the text of an instruction, which differs between libraries.
_ADDRESSES = {
    "x86-64": r"(-?\d+)\(%rip\)|^(?:callq|jmp)\t(0x\w+)",
    "aarch64": r"^(?:adrp?\t\w+, |bl?\t)(.*)|^(?:ldrb?|strb?)\t\w+, \[x\d+(.*)\]"
    r"|^add\tx\d+, x\d+, (#\d+)",
    "riscv": r"^auipc\t\w+, (.*)|^addi\ta\d, a\d, (.*)|^addi\ts0, s0, (.*)|^ld\ta\d, (.*)\(a\d\)"
    r"|^jalr?\t(.*)\(\w+\)|^jal\t(0x.*)|^j\t(.*)",
}
_TARGETS = {
    "x86-64": ["--target=x86_64-linux-gnu"],
    "aarch64": ["--target=aarch64-linux-gnu", "-march=armv8.5-a+memtag"],
    "riscv": ["--target=riscv64-linux-gnu", "-march=rv64gc", "-mno-relax"],
}
# Start-up code that compilers elsewhere emit, one instruction away from that of the corpus: crti.o
# with BTI, and GCC's clean-up as manylinux has it.
_BTI = ("aarch64", "hint\t#34", "stp\tx29, x30, [sp, #-16]!", "mov\tx29, sp")
_LEAVE = ("ldp\tx29, x30, [sp], #16", "ret")
ELSEWHERE = {
    (*_BTI, *_LEAVE),
    (*_BTI, "bl\tADDRESS", *_LEAVE),
    (
        *("x86-64", "endbr64", "cmpb\t$0, ADDRESS(%rip)", "jne\t+45", "pushq\t%rbp"),
        *("cmpq\t$0, ADDRESS(%rip)", "movq\t%rsp, %rbp", "je\t+14", "leaq\tADDRESS(%rip), %rdi"),
        *("callq\tADDRESS", "callq\tADDRESS", "movb\t$1, ADDRESS(%rip)", "popq\t%rbp", "retq"),
    ),
}
_ENDS = re.compile(r"(rep\S* )?(retq?|jmpq?|b|br|j|jr)$")
_TARGET = re.compile(r"0x([0-9a-f]+)$")


class Code(NamedTuple):
    """One instruction."""

    address: int
    nbytes: int
    text: str


class Library:
    """The start-up code of a library, as llvm-objdump reads it.

    Attributes
    ----------
    machine : str
        As llvm-objdump names it.
    reached : list of Code
        What the loader reaches by direct jumps and calls.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        words = ["llvm-objdump", "-d", "--mattr=+c,+a,+m,+d", path]
        shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        self.machine = re.sub(".*file format elf64-(little)?", "", shown.split("\n\n")[0]).strip()
        lines = re.findall(r"^ *([0-9a-f]+): ((?:[0-9a-f]+ )+) *\t(.*)$", shown, re.MULTILINE)
        code = {
            int(at, 16): Code(int(at, 16), len(bytes.fromhex(data)), _text(text))
            for at, data, text in lines
        }
        self.reached = sorted({*_followed(code, _entries(data))})

    def functions(self) -> set[tuple[str, ...]]:
        """Return the instructions of each function up to its end, without addresses."""
        found, current = set(), [self.machine]
        for code in self.reached:
            current.append(self._shown(code))
            if _ends(code):
                found.add(tuple(current))
                current = [self.machine]
        return found

    def _shown(self, code: Code) -> str:
        text = code.text
        if found := re.search(_ADDRESSES[self.machine], text):
            start, end = found.span(found.lastindex or 0)
            return f"{text[:start]}ADDRESS{text[end:]}"
        if target := _TARGET.search(text):
            text = f"{text[: target.start()]}{int(target[1], 16) - code.address:+}"
        return text


def _ends(code: Code) -> bool:
    return _ENDS.match(code.text.partition("\t")[0]) is not None


def _text(shown: str) -> str:
    return shown.split("#0x")[0].split(" # ")[0].split("<")[0].strip()


def _entries(data: bytes) -> list[int]:
    """Return the addresses of the functions that the loader calls."""
    image = Image(memoryview(data))
    machine = machines()[image.machine_number]
    found = [call for _, _, _, call in called_functions(image)]
    addresses = (
        call if isinstance(call, int) or call is None else relative_value(image, machine, call)
        for call in found
    )
    return [address for address in addresses if address is not None]


def _followed(code: dict[int, Code], pending: list[int]) -> Iterator[Code]:
    """Yield the instructions that run, as far as jumps and calls have an address."""
    seen = set()
    while pending:
        at = pending.pop()
        if at in seen or at not in code:
            continue
        seen.add(at)
        yield code[at]
        if target := _TARGET.search(code[at].text):
            pending.append(int(target[1], 16))
        if not _ends(code[at]):
            pending.append(at + code[at].nbytes)


def assembled(machine: str, folder: Path) -> list[bytes]:
    """Return the bytes of each instruction of `INSERTED`."""
    found = []
    for text in re.split(r"[;\n]", INSERTED[machine]):
        (folder / "a.s").write_text(f"{text.strip()}\n")
        words = ["clang", *_TARGETS[machine], "-c", "a.s", "-o", "a.o"]
        done = subprocess.run(words, cwd=folder, capture_output=True)
        if done.returncode == 0:
            copy = ["llvm-objcopy", "-O", "binary", "-j", ".text", "a.o", "a.bin"]
            subprocess.run(copy, cwd=folder, check=True)
            found.append((folder / "a.bin").read_bytes())
    return found


def mutate(data: bytes, library: Library, others: list[bytes], chance: random.Random) -> bytes:
    """Return a library with one instruction changed, exchanged or inserted."""
    index = chance.randrange(len(library.reached))
    code = library.reached[index]
    segment = Image(memoryview(data)).segment_at(code.address)
    assert segment is not None
    start = code.address - segment.address + segment.offset
    old = data[start : start + code.nbytes]
    other = chance.choice(others)
    kind = chance.randrange(4)
    if kind == 0:  # one bit
        new = bytearray(old)
        new[chance.randrange(len(old))] ^= 1 << chance.randrange(8)
    elif kind == 1:  # another instruction, which may go over the next ones
        new = other
    elif kind == 2:  # inserted: the next 48 bytes move
        new = other + data[start : start + 48]
    else:  # exchanged with the one after it
        end = start + code.nbytes
        after = library.reached[(index + 1) % len(library.reached)].nbytes
        new = data[end : end + after] + old
    new = new[: segment.offset + segment.nbytes - start]
    return data[:start] + bytes(new) + data[start + len(new) :]


def main(count: int = 100_000, seed: int = 31) -> int:
    """Make mutants; the accepted ones have the instructions of a library of the corpus."""
    chance, results = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = {path: path.read_bytes() for path in sorted(CORPUS.glob("*.so"))}
        libraries = {path: Library(path, data) for path, data in corpus.items()}
        others = {name: assembled(name, folder) for name in INSERTED}
        known = ELSEWHERE.union(*(each.functions() for each in libraries.values()))
        for _ in range(count):
            path, data = chance.choice([*corpus.items()])
            mutant = mutate(data, libraries[path], others[libraries[path].machine], chance)
            if mutant == data:
                results["equal"] += 1
            elif _is_refused(mutant):
                results["refused"] += 1
            else:
                (folder / "mutant.so").write_bytes(mutant)
                is_known = Library(folder / "mutant.so", mutant).functions() <= known
                results["known" if is_known else "accepted"] += 1
    print(f"{count} mutants with seed {seed}: {dict(results)}")
    return int(results["accepted"] > 0 or results["refused"] < count // 2)


def _is_refused(data: bytes) -> bool:
    try:
        return next(violations(memoryview(data), Rules()), None) is not None
    except ValueError:
        return True


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
