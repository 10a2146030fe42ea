"""The static check of a library: a good one passes, a damaged one meets the guard for it."""

from __future__ import annotations

import contextlib
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime._core import ElfFile
from runtime.error import LibraryLoadError

from ...support.compile import compile_c
from ...support.elf_poke import Elf, Record
from ...support.paths import TESTS
from .elf_rows import RELR_ROWS, ROWS, SYSV_ROWS

CompileLibrary = Callable[..., Path]
SEEDS = TESTS / "fuzz" / "corpus" / "elf_check"

GOOD = """
#include <math.h>
#include <stdio.h>
const char blob[] = "blob bytes";
int data[4] = {1, 2, 3, 4}, *pointer = data + 1;
char zeros[70000];
static char hidden[5000];
__thread int per_thread = 3;
__attribute__((constructor)) static void up(void) { data[0]++; }
__attribute__((destructor)) static void down(void) { data[0]--; }
double add(double x) {
  printf("%p", (void *)hidden);
  return sin(x) + per_thread + *pointer;
}
static int one(void) { return 1; }
static int (*pick(void))(void) { return one; }
int chosen(void) __attribute__((ifunc("pick")));
static int inner(void) __attribute__((ifunc("pick")));
int call(void) { return chosen() + inner(); }
"""
GNU = ("-Wl,--hash-style=gnu", "-lm")
SYSV = ("-Wl,--hash-style=sysv", "-lm")
BOTH = ("-Wl,--hash-style=both", "-Wl,-z,relro,-z,now", "-lm")
RELR = ("-Wl,-z,pack-relative-relocs", "-lm")
EMPTY = "extern int u(void); __attribute__((constructor)) static void up(void) { u(); }"


@pytest.fixture(scope="session")
def good(compile_library: CompileLibrary) -> bytes:
    """A library with a GNU hash table and something of everything."""
    return compile_library(GOOD, *GNU).read_bytes()


@pytest.fixture(scope="session")
def sysv(compile_library: CompileLibrary) -> bytes:
    """The same library with a SysV hash table."""
    return compile_library(GOOD, *SYSV).read_bytes()


@pytest.fixture(scope="session")
def relr(compile_library: CompileLibrary) -> bytes:
    """The same library with packed relative relocations."""
    return compile_library(GOOD, *RELR).read_bytes()


def refuse(path: Path, data: bytes, reason: str, match: str) -> None:
    """Expect that a file of these bytes is refused, naming itself, the reason and the place."""
    path.write_bytes(data)
    with pytest.raises(LibraryLoadError, match=match) as caught:
        ElfFile(str(path))
    assert reason == caught.value.reason
    assert str(path) == caught.value.path
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("row", ROWS)
def test_poked_field_is_refused(good: bytes, tmp_path: Path, row: str) -> None:
    """One wrong field of a good library is found by the guard for it."""
    change, reason, match = ROWS[row]
    elf = Elf(good)
    change(elf)
    refuse(tmp_path / "poked.so", bytes(elf.data), reason, match)


@pytest.mark.parametrize("row", SYSV_ROWS)
def test_poked_sysv_hash_is_refused(sysv: bytes, tmp_path: Path, row: str) -> None:
    """A SysV hash table that leaves its bounds or has a cycle is refused."""
    change, match = SYSV_ROWS[row]
    elf = Elf(sysv)
    change(elf)
    refuse(tmp_path / "poked.so", bytes(elf.data), "malformed", match)


@pytest.mark.parametrize("row", RELR_ROWS)
def test_poked_packed_relocation_is_refused(relr: bytes, tmp_path: Path, row: str) -> None:
    """Packed relative relocations stay inside writable segments."""
    change, match = RELR_ROWS[row]
    elf = Elf(relr)
    change(elf)
    refuse(tmp_path / "poked.so", bytes(elf.data), "malformed", match)


def test_hash_tables_that_disagree_are_refused(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """Two hash tables must be about the same number of symbols."""
    elf = Elf(compile_library(GOOD, *BOTH).read_bytes())
    count = elf.table("u32", "HASH", 1)
    elf.poke(count, "word", elf.peek(count, "word") + 1)
    refuse(tmp_path / "lib.so", bytes(elf.data), "malformed", "DT_HASH: number of symbols, expect")


def test_defined_version_outside_is_refused(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """The versions that a library defines are read inside its segments only."""
    elf = Elf(compile_library(GOOD, *GNU, "-Wl,--default-symver").read_bytes())
    elf.poke(elf.table("verdef", "VERDEF"), "vd_aux", 1 << 31)
    refuse(tmp_path / "lib.so", bytes(elf.data), "malformed", "DT_VERDEF: version entry, expected")


@pytest.mark.parametrize("options", [GNU, SYSV, BOTH, RELR], ids=" ".join)
def test_good_library_is_accepted(
    compile_library: CompileLibrary, options: tuple[str, ...]
) -> None:
    """Constructors, IFUNC, TLS, and every kind of hash table and relocation pass; `nm` agrees."""
    path = compile_library(GOOD, *options)
    found = ElfFile(str(path)).symbol("blob")
    assert found is not None
    offset, nbytes = found
    assert path.read_bytes()[offset : offset + nbytes] == b"blob bytes\0"
    assert ElfFile(str(path)).symbol("sin") is None
    assert ElfFile(str(path)).symbol("absent") is None


@pytest.mark.parametrize("path", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_library_of_any_linker_and_machine_is_accepted(path: Path) -> None:
    """The seeds of the fuzzer are libraries of compilers, for three machines, by two linkers."""
    machine = int.from_bytes(path.read_bytes()[18:20], "little")
    assert ElfFile(str(path), machine).symbol("add") is not None


@pytest.mark.parametrize("options", [GNU, SYSV], ids=" ".join)
def test_lookup_agrees_with_nm(compile_library: CompileLibrary, options: tuple[str, ...]) -> None:
    """Every defined symbol with file bytes is found at the size that nm prints."""
    path = compile_library(GOOD, *options)
    command = ["nm", "-D", "-S", "--defined-only", str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    sized = {f[3]: int(f[1], 16) for f in fields if len(f) == 4 and f[2] in "DRTVWi"}
    elf_file = ElfFile(str(path))
    found = {name: elf_file.symbol(name) for name in sized}
    assert sized == {name: place[1] for name, place in found.items() if place is not None}
    assert {"add", "blob", "data"} <= sized.keys()


@pytest.mark.parametrize("kind", ["good", "sysv", "relr"])
def test_truncation_is_refused(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A library that was cut anywhere, in steps of 64 bytes, is not loaded."""
    data: bytes = request.getfixturevalue(kind)
    for nbytes in range(0, len(data), 64):
        path = tmp_path / "cut.so"
        path.write_bytes(data[:nbytes])
        with pytest.raises(LibraryLoadError) as caught:
            ElfFile(str(path))
        assert caught.value.reason in {"not-elf", "truncated"}


@pytest.mark.parametrize("kind", ["good", "sysv", "relr"])
def test_flipped_bytes_never_crash(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With 1 to 4 bytes overwritten, mostly in the tables, the check refuses or look-ups work."""
    data: bytes = request.getfixturevalue(kind)
    choose = random.Random(20)
    path = tmp_path / "flipped.so"
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(choose.randint(1, 4)):
            limit = choose.choice([64, 0x1000, len(data)])
            changed[choose.randrange(limit)] = choose.choice([0, 1, 0x7F, 0x80, 0xFF])
        path.write_bytes(changed)
        with contextlib.suppress(LibraryLoadError):
            ElfFile(str(path)).symbol("blob")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_mutated_words_never_crash(
    compile_library: CompileLibrary, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any 8 bytes may have any value: our error, or a library."""
    good = bytearray(compile_library(GOOD, *GNU).read_bytes())
    offset = data.draw(st.integers(0, len(good) - 8))
    good[offset : offset + 8] = data.draw(st.binary(min_size=8, max_size=8))
    path = tmp_path_factory.getbasetemp() / "mutated.so"
    path.write_bytes(good)
    with contextlib.suppress(LibraryLoadError):
        ElfFile(str(path)).symbol("add")


NOT_ELF: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "not-elf", "found an empty file"),
    "one byte": (b"x", "not-elf", "not an ELF shared object, expected bytes 7f 45 4c 46, found 78"),
    "four bytes": (b"\x7fELF", "truncated", "not an ELF shared object, .* 64 bytes, found 4"),
    "63 bytes": (b"\x7fELF" + bytes(59), "truncated", "expected at least 64 bytes, found 63"),
    "text": (b"hello, world\n" * 10, "not-elf", "not an ELF shared object"),
    "random": (random.Random(1).randbytes(4096), "not-elf", "not an ELF shared object"),
    "ar": (b"!<arch>\n" + bytes(60), "format", "ar archive .static library.; link it first"),
    "thin ar": (b"!<thin>\n" + bytes(60), "format", "thin ar archive"),
    "tar": (
        b"a.o".ljust(257, b"\0") + b"ustar\0" + bytes(250),
        "format",
        "tar archive; link it first",
    ),
    "PE": (b"MZ" + bytes(100), "format", "a PE file"),
    "Mach-O": (b"\xcf\xfa\xed\xfe" + bytes(60), "format", "64-bit Mach-O"),
    "Mach-O 32": (b"\xce\xfa\xed\xfe" + bytes(60), "format", "32-bit Mach-O"),
    "Mach-O big": (b"\xfe\xed\xfa\xcf" + bytes(60), "format", "64-bit big-endian Mach-O"),
    "Mach-O big 32": (b"\xfe\xed\xfa\xce" + bytes(60), "format", "32-bit big-endian Mach-O"),
    "fat": (b"\xca\xfe\xba\xbe" + bytes(60), "format", "fat Mach-O"),
    "fat 64": (b"\xca\xfe\xba\xbf" + bytes(60), "format", "fat Mach-O"),
    "wasm": (b"\0asm\1\0\0\0", "format", "WebAssembly"),
    "bitcode": (b"BC\xc0\xde" + bytes(60), "format", "LLVM bitcode"),
    "wrapped bitcode": (b"\xde\xc0\x17\x0b" + bytes(60), "format", "LLVM bitcode"),
    "ZIP": (b"PK\3\4" + bytes(60), "format", "ZIP archive"),
    "gzip": (b"\x1f\x8b\x08" + bytes(60), "format", "gzip data"),
    "xz": (b"\xfd7zXZ\0" + bytes(60), "format", "xz data"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(60), "format", "zstd data"),
    "bzip2": (b"BZh9" + bytes(60), "format", "bzip2 data"),
    "script": (b"#!/bin/sh\nexit 0\n", "format", "a script"),
    "linker script": (b"/* GNU ld script\n*/ GROUP ( libc.so.6 )", "format", "a linker script"),
}


@pytest.mark.parametrize("row", NOT_ELF)
def test_other_format_is_named(tmp_path: Path, row: str) -> None:
    """The error of a file that is not an ELF file names its format."""
    data, reason, match = NOT_ELF[row]
    refuse(tmp_path / "other.so", data, reason, match)


def test_object_file_is_named(tmp_path: Path) -> None:
    """The error of an object that is not linked advises linking it."""
    path = compile_c(GOOD, tmp_path / "object.o", "-c")
    refuse(path, path.read_bytes(), "format", "relocatable object .*link it first")


@pytest.mark.parametrize("option", ["-pie", "-no-pie"])
def test_executable_is_refused(tmp_path: Path, option: str) -> None:
    """An executable is not a library, position-independent or not."""
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    path = tmp_path / "program"
    command = ["cc", option, "-fPIE", str(tmp_path / "main.c"), "-o", str(path)]
    subprocess.run(command, check=True)
    refuse(path, path.read_bytes(), "format", "executable")


def test_other_machine_is_checked_on_request(good: bytes, tmp_path: Path) -> None:
    """A cross-compiled library is checked for its own machine and refused for another."""
    path = tmp_path / "arm.so"
    elf = Elf(good).poke(Elf(good).header, "e_machine", 183)
    refuse(path, bytes(elf.data), "machine", "expected x86-64 .*found aarch64")
    path.write_bytes(good)
    with pytest.raises(LibraryLoadError, match=r"expected aarch64 .*found x86-64"):
        ElfFile(str(path), machine=183)
    assert ElfFile(str(path), machine=62).machine == 62


def test_extended_section_count_is_bounded(good: bytes, tmp_path: Path) -> None:
    """With e_shnum 0 the count is in section 0, and is checked there."""
    elf = Elf(good)
    table = elf.peek(elf.header, "e_shoff")
    elf.poke(elf.header, "e_shnum", 0).poke(Record("section", table), "sh_size", 1 << 60)
    refuse(tmp_path / "lib.so", bytes(elf.data), "truncated", "section header table")


def test_many_sections_are_accepted(compile_library: CompileLibrary) -> None:
    """A library with 70,000 sections loads: their headers are read only as far as needed."""
    many = (
        'asm(".macro one\\n.section .s\\\\@,\\"\\",@progbits\\n.byte 1\\n.endm\\n"'
        '".rept 70000\\none\\n.endr\\n.text");\n' + 'const char blob[] = "bytes";'
    )
    path = compile_library(many)
    elf = Elf(path.read_bytes())
    assert elf.peek(elf.header, "e_shnum") == 0
    assert ElfFile(str(path)).symbol("blob") is not None


def test_library_without_section_headers_is_accepted(good: bytes, tmp_path: Path) -> None:
    """Section headers may be stripped: the loader does not need them, nor do we."""
    elf = Elf(good)
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        elf.poke(elf.header, field, 0)
    path = tmp_path / "stripped.so"
    path.write_bytes(elf.data)
    assert ElfFile(str(path)).symbol("blob") is not None


def test_library_that_exports_nothing_is_accepted(compile_library: CompileLibrary) -> None:
    """An empty hash table does not count the symbols that are only asked for."""
    path = compile_library(EMPTY)
    assert ElfFile(str(path)).symbol("u") is None


def test_symbol_index_is_bounded_without_exports(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """Where the hash table is empty, a symbol index still stays inside the file."""
    elf = Elf(compile_library(EMPTY).read_bytes())
    elf.poke(elf.rela(7), "r_symbol", 1 << 24)
    refuse(tmp_path / "lib.so", bytes(elf.data), "malformed", "DT_JMPREL: symbol index of reloc")


def test_large_string_table_without_nul_is_refused(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """64 MiB of names without a NUL are refused by their last byte."""
    nbytes = 64 << 20
    source = f"char names[{nbytes}] = {{1}};"
    elf = Elf(compile_library(source).read_bytes())
    names = elf.peek(elf.symbol("names"), "st_value")
    start = elf.at("u8", names).offset
    elf.poke(elf.tag("STRTAB"), "d_val", names).poke(elf.tag("STRSZ"), "d_val", nbytes)
    elf.data[start : start + nbytes] = b"x" * nbytes
    refuse(tmp_path / "lib.so", bytes(elf.data), "malformed", "0x4000000 bytes, expected a NUL")


@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_rpath_and_runpath_are_accepted(compile_library: CompileLibrary, tags: str) -> None:
    """conda, spack and auditwheel write search paths relative to the library."""
    path = compile_library(GOOD, *GNU, "-Wl,-rpath,$ORIGIN/libs", f"-Wl,{tags}")
    assert ElfFile(str(path)).symbol("blob") is not None


@pytest.mark.parametrize("option", ["--audit=x.so", "--depaudit=x.so", "-f,x.so", "-F,x.so"])
def test_foreign_code_by_linker_option_is_refused(
    compile_library: CompileLibrary, tmp_path: Path, option: str
) -> None:
    """Libraries that a linker writes for audit and filters are refused by policy."""
    data = compile_library(GOOD, *GNU, f"-Wl,{option}").read_bytes()
    refuse(tmp_path / "lib.so", data, "policy", "makes the loader use another object's code")


def test_executable_stack_by_linker_option_is_refused(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """The check refuses a library of `-z execstack`, and states the fix."""
    data = compile_library(GOOD, *GNU, "-Wl,-z,execstack").read_bytes()
    refuse(tmp_path / "lib.so", data, "policy", "link with -z noexecstack")
