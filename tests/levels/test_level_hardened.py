"""The constructor that chooses a level is known start-up code: hardened loads accept no other."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import packer
from packer.levels.dispatcher import Dispatched, dispatcher
from packer.levels.table import levels_of
from runtime.trust.hardening.rules import Rules, violations

from ..support import needs
from ..support.each_level import LEVEL_MACRO
from ..support.hardened import compiled, refused

SOURCE = "int one(int x) { return x + 1; }\nint two(int x) { return x + 2; }\n"
LEVELS = ["x86-64-v2", "x86-64-v3", "armv8-a", "armv8.2-a"]
COMPILERS = (
    "gcc",
    "clang",
    "musl-gcc",
    "aarch64-linux-gnu-gcc",
    "clang --target=aarch64-linux-gnu",
)
OPTIONS = ("-fuse-ld=bfd", "-fuse-ld=lld", "-fuse-ld=mold", "-Wl,-z,pack-relative-relocs")
CASES = [
    (compiler, option)
    for compiler, option in product(COMPILERS, OPTIONS)
    # GCC as a cross compiler finds the linkers with its prefix only.
    if not (compiler.endswith("-gnu-gcc") and option in OPTIONS[1:3])
]
# A replaced line of the dispatcher, and why the library is refused then.
HOSTILE = [
    (".quad getenv", ".quad system", "calls 'system'"),
    (".quad dprintf", ".quad packer_cpu_set", "calls another address than that of 'dprintf'"),
    (".quad packer_cpu_getenv -", ".quad packer_cpu_slots -", "than that of 'getenv'"),
    ("packer_cpu_slots - .", "packer_cpu_getenv - .", "expected addresses of code there"),
    ("packer_cpu_slots - .", "packer_cpu_slots - . + 8", "expected addresses of code there"),
    ("packer_cpu_slots - .", "called - .", "whose functions the loader calls"),
    ("packer_cpu_num_functions, 2", "packer_cpu_num_functions, 3", "expected addresses of code"),
    ("packer_cpu_num_functions, 2", "packer_cpu_num_functions, -1", "expected addresses of code"),
    ("packer_cpu_num_levels, 4", "packer_cpu_num_levels, 0x10000000", "which are not all code"),
    ("mov $2, %edi", "mov $1, %edi", "is not the start-up code of a known compiler"),
    ("%.16s is used", "%n is used", "is not the start-up code of a known compiler"),
]


@pytest.mark.parametrize(("compiler", "option"), CASES)
def test_a_library_with_levels_keeps_every_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, option: str
) -> None:
    """Of each compiler and linker."""
    needs.program(compiler.split()[0])
    if linker := option.partition("-fuse-ld=")[2]:
        needs.linker(linker)
    monkeypatch.setenv("CC", compiler)
    module = packer.CSourceModule(SOURCE, functions="auto")
    target = "aarch64-linux-gnu" if "aarch64" in compiler else None
    path = packer.export_library(
        module, tmp_path / "a.so", options=[option], build=packer.Build(target=target, cpu=LEVELS)
    )
    assert refused(path) == []


def test_a_hardened_load_chooses_a_level(tmp_path: Path) -> None:
    """Also with DSO_CPU, about which the constructor may print."""
    needs.hardware(platform.machine() == "x86_64", "x86-64")
    module = packer.CSourceModule(
        LEVEL_MACRO + "int level(void) { return LEVEL; }\n", functions="auto"
    )
    path = packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=LEVELS))
    code = "import runtime, sys\nruntime.harden()\nprint(runtime.load(sys.argv[1])['level']())"
    run = subprocess.run(
        [sys.executable, "-c", code, path],
        env=os.environ | {"DSO_CPU": "x86-64-v2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("2\n", "")


def test_no_byte_of_a_constructor_can_change(tmp_path: Path) -> None:
    """From its first instruction to the number of levels."""
    needs.hardware(platform.machine() == "x86_64", "x86-64")
    module = packer.CSourceModule(SOURCE, functions="auto")
    path = packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=LEVELS))
    data = bytearray(path.read_bytes())
    start = data.index(bytes.fromhex("f30f1efa 53 55 4154"))
    end = data.index(b"x86-64-v2\0", start) - 4
    for place in range(start, end):
        data[place] ^= 1 << place % 8
        assert [*violations(memoryview(data), Rules())], place - start
        data[place] ^= 1 << place % 8


@pytest.mark.parametrize(("old", "new", "reason"), HOSTILE)
def test_what_a_constructor_uses_is_checked(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    """Each address and number that differs from library to library."""
    needs.hardware(platform.machine() == "x86_64", "x86-64")
    targets = ("called_one",) * 4
    functions = [Dispatched(name, targets) for name in ("one", "two")]
    text = dispatcher([*levels_of("x86_64").values()], functions)
    assert text.count(old) == 1
    own = (
        "int called_one(int x) { return x; }\n"
        '__asm__(".section .init_array,\\"aw\\"\\ncalled: .quad packer_cpu_set, packer_cpu_set");\n'
    )
    path = compiled(own + text.replace(old, new), tmp_path / "a.so", "-nostartfiles")
    ((rule, message), *_) = refused(path)
    assert rule == "constructors"
    assert reason in message
