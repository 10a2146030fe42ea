"""Levels of other machines, C libraries and processors, run by emulators."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ..support import needs
from ..support.each_level import ARM_LEVELS, LEVEL_MACRO, PROCESSORS, X86_LEVELS, called, each_level
from ..support.process import run_python

CODE = (
    LEVEL_MACRO
    + """
extern int shared;
int level(void) { return LEVEL; }
static double weight(int i) { return 1.0 / (1 + i); }
int kernel(void) {
  double sum = 0;
  float x[100];
  for (int i = 0; i < 100; i++) x[i] = (float)(i % 7) * 0.5f;
  for (int i = 0; i < 100; i++) sum += x[i] * weight(i);
  return (int)(sum * 1000);
}
int raise_shared(void) { return ++shared; }
"""
)
OTHER = "int shared = 40; int raise_shared_there(void) { return ++shared; }"
FUNCTIONS = ["level", "kernel", "raise_shared", "raise_shared_there"]
ARM = {"compiler": "aarch64-linux-gnu-gcc"}


def c_module() -> packer.CSourceModule:
    """Two sources that share a variable."""
    options = {"functions": "auto", "options": ["-O3"]}
    module = packer.CSourceModule(CODE, **options)
    module.import_module(packer.CSourceModule(OTHER, **options))
    return module


@pytest.fixture
def expected(tmp_path) -> list[int]:
    """The results of the same code without levels, but its level."""
    model = runtime.load(packer.export_library(c_module(), tmp_path / "plain.so"))
    return [model[name]() for name in FUNCTIONS[1:]]


@pytest.mark.parametrize(
    ("processor", "level"), [("cortex-a53", 1), ("neoverse-n1", 82), ("max", 9)]
)
def test_levels_of_aarch64(processor, level, expected, tmp_path) -> None:
    """Each processor runs the best level that it has."""
    needs.program("aarch64-linux-gnu-gcc", "qemu-aarch64")
    target = "aarch64-linux-gnu"
    path = packer.export_library(
        c_module(), tmp_path / "arm.so", build=packer.Build(target=target, cpu=ARM_LEVELS)
    )
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", processor]
    assert called(path, FUNCTIONS, emulator, **ARM) == [level, *expected]


def test_levels_of_several_machines(tmp_path) -> None:
    """One list serves every target, which uses the levels of its machine."""
    needs.program("aarch64-linux-gnu-gcc")
    both = ["x86-64-v2", "armv8.2-a", "x86-64-v3"]
    found = {}
    for target in ("x86_64-linux-gnu", "aarch64-linux-gnu"):
        path = packer.export_library(
            c_module(), tmp_path / "a.so", build=packer.Build(target=target, cpu=both)
        )
        levels = packer.inspect_library(path).cpu
        found[target] = levels and levels.levels
    assert found == {
        "x86_64-linux-gnu": ("x86-64-v2", "x86-64-v3"), "aarch64-linux-gnu": ("armv8.2-a",),
    }  # fmt: skip


def test_llvm_modules_of_aarch64(tmp_path) -> None:
    """LLVM compiles for each level, beside a cross compiler."""
    needs.program("aarch64-linux-gnu-gcc", "qemu-aarch64")
    ir = "define i64 @twice() { %y = add i64 20, 22  ret i64 %y }"
    module = c_module()
    module.import_module(packer.LLVMModule(ir, functions={"twice": "int64_t(void)"}))
    target = "aarch64-linux-gnu"
    path = packer.export_library(
        module, tmp_path / "arm.so", build=packer.Build(target=target, cpu=ARM_LEVELS)
    )
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", "max"]
    assert called(path, ["level", "twice"], emulator, **ARM) == [9, 42]


@pytest.mark.parametrize(("processor", "level"), PROCESSORS.items())
def test_levels_with_musl(processor, level, expected, tmp_path, monkeypatch) -> None:
    """There is no IFUNC in musl: a constructor chooses the level."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    monkeypatch.setenv("CC", needs.program("musl-gcc"))
    path = packer.export_library(
        c_module(), tmp_path / "musl.so", build=packer.Build(cpu=X86_LEVELS)
    )
    dynamic = subprocess.check_output([needs.program("readelf"), "-d", path], text=True)
    assert "libc.so.6" not in dynamic
    emulator = ["qemu-x86_64", "-cpu", processor]
    number = X86_LEVELS.index(level) + 2
    assert called(path, FUNCTIONS, emulator, "musl-gcc") == [number, *expected]
    assert called(path, FUNCTIONS[1:], compiler="musl-gcc") == expected


PROGRAM = """
import runtime, sys
model = runtime.load(sys.argv[1])
print(*(model[name]() for name in sys.argv[2:]))
"""


@pytest.mark.parametrize(("processor", "level"), PROCESSORS.items())
def test_python_on_an_older_processor(processor, level, expected, tmp_path) -> None:
    """The runtime chooses the same level, and refuses one above the processor's."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        needs.program("/usr/bin/python3")
    path = packer.export_library(c_module(), tmp_path / "a.so", build=packer.Build(cpu=X86_LEVELS))
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [needs.program("qemu-x86_64"), "-cpu", processor, python, "-S", "program.py"]
    environment = {"PYTHONPATH": str(Path(runtime.__file__).parents[1]), "PATH": "/usr/bin"}

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, path, *FUNCTIONS], cwd=tmp_path, env=environment | variables,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    number = X86_LEVELS.index(level) + 2
    assert run().stdout.split() == [str(number), *map(str, expected)], run().stderr
    lowest = run(DSO_CPU="x86-64-v2").stdout.split()
    assert lowest == ["2", *map(str, expected)]
    refused = run(DSO_CPU="x86-64-v4")
    assert refused.returncode == 1
    assert "LibraryLoadError" in refused.stderr
    assert "x86-64-v4" in refused.stderr.splitlines()[-1]


def test_every_kind_of_host_code_has_levels(tmp_path) -> None:
    """C, LLVM IR, and archives of the user, in one library."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    archives = {}
    for level in X86_LEVELS:
        source = tmp_path / f"{level}.c"
        source.write_text(LEVEL_MACRO + "int archived(void) { return 10 * LEVEL; }")
        made = source.with_suffix(".o")
        subprocess.run(["cc", "-c", "-fPIC", f"-march={level}", source, "-o", made], check=True)
        archives[level] = made.with_suffix(".a")
        subprocess.run([needs.program("ar"), "rc", archives[level], made], check=True)
    ir = "define i32 @llvm() { %y = call i32 @level()  ret i32 %y }\ndeclare i32 @level()"
    module = c_module()
    module.import_module(packer.LLVMModule(ir, functions={"llvm": "int32_t(void)"}))
    module.import_module(packer.StaticLibraryModule(archives, {"archived": "int(void)"}))
    path = packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=X86_LEVELS))
    found = [
        [model[name]() for name in ("level", "llvm", "archived")] for _, model in each_level(path)
    ]
    assert found == [[n, n, 10 * n] for n in (2, 3, 4)][: len(found)]
    assert len(found) >= 1


def test_native_is_this_processor_for_llvm_too(expected, tmp_path) -> None:
    """One level, whose IR is compiled with the processor's features."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    ir = "define i32 @llvm() { %y = call i32 @level()  ret i32 %y }\ndeclare i32 @level()"
    module = c_module()
    module.import_module(packer.LLVMModule(ir, functions={"llvm": "int32_t(void)"}))
    model = runtime.load(
        packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu="native"))
    )
    assert [model[name]() for name in FUNCTIONS[1:]] == expected
    assert model["llvm"]() == model["level"]()


THEIRS = """
import json, sys, tvm_ffi
model = tvm_ffi.load_module(sys.argv[1])
print(json.dumps([model[name]() for name in sys.argv[2:]]))
"""


@pytest.mark.parametrize("level", ["x86-64-v2", ""])
def test_tvm_ffi_loads_a_level(level, expected, tmp_path, monkeypatch) -> None:
    """The forced one, else the best."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    path = packer.export_library(c_module(), tmp_path / "a.so", build=packer.Build(cpu=X86_LEVELS))
    monkeypatch.setenv("DSO_CPU", level)
    number, *found = run_python(THEIRS, str(path), *FUNCTIONS)
    assert found == expected
    assert number == (2 if level else runtime.load(path)["level"]())


def test_thread_local_of_ir_is_of_the_lowest_level(tmp_path) -> None:
    """The note names the module, since IR has no file."""
    needs.program("aarch64-linux-gnu-gcc")
    ir = "@t = thread_local global i32 7\ndefine i32 @f() { %v = load i32, ptr @t  ret i32 %v }"
    module, steps = packer.LLVMModule(ir, functions={"f": "int32_t(void)"}), []
    levels = ("armv8-a", "armv9-a")
    packer.export_library(
        module,
        tmp_path / "a.o",
        progress=steps.append,
        build=packer.Build(target="aarch64-linux-gnu", cpu=levels),
    )
    assert any(
        step.startswith("armv8-a only: <LLVMModule '") and step.endswith("thread-local variables")
        for step in steps
    )
