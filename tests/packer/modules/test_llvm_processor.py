"""LLVMModule for a processor: instructions, results, refused names."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.levels.table import levels_of
from packer.project import read_project
from packer.target import find_target

from ...support import needs

SAXPY = """
define void @saxpy(float %a, ptr noalias %x, ptr noalias %y, i64 %n) ATTRIBUTES {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %vx = load float, ptr %px
  %vy = load float, ptr %py
  %product = fmul contract float %a, %vx
  %sum = fadd contract float %product, %vy
  store float %sum, ptr %py
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
PLAIN = SAXPY.replace("ATTRIBUTES", "")
# As Clang writes it: every function names a processor and features.
CLANG = SAXPY.replace(
    "ATTRIBUTES",
    '"target-cpu"="x86-64" "target-features"="+cx8,+sse,+sse2" "tune-cpu"="generic"',
)
DECLARED = {"saxpy": "void(float a, const float *x, float *y, int64_t n)"}
X86 = {"target": "x86_64-unknown-linux-gnu"}
ARM = {"target": "aarch64-unknown-linux-gnu"}

# Four pairs of floats; scalar code until an optimiser joins them to vectors.
PAIRS = "define void @add4(ptr noalias %x, ptr noalias %y) {\n" + "".join(
    f"  %px{i} = getelementptr float, ptr %x, i64 {i}\n  %x{i} = load float, ptr %px{i}\n"
    f"  %py{i} = getelementptr float, ptr %y, i64 {i}\n  %y{i} = load float, ptr %py{i}\n"
    f"  %s{i} = fadd float %x{i}, %y{i}\n  store float %s{i}, ptr %py{i}\n"
    for i in range(4)
) + "  ret void\n}\n"  # fmt: skip


def assembly(ir: str = PLAIN, **options) -> str:
    """The instructions that LLVM writes."""
    return packer.LLVMModule(ir, **{**X86, **options}).get_source("s")


def disassembled(path: Path) -> str:
    """The instructions of a file, as objdump reads them."""
    command = [needs.program("objdump"), "-d", "--no-show-raw-insn", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("ir", [PLAIN, CLANG], ids=["plain", "from Clang"])
def test_a_processor_chooses_the_instructions(ir) -> None:
    """SSE2 by default, AVX2 with FMA on v3, AVX-512 registers where the features allow them."""
    baseline, v3 = assembly(ir), assembly(ir, cpu="x86-64-v3")
    assert "mulps" in baseline
    assert not re.search("ymm|vfmadd", baseline)
    assert re.search(r"vfmadd\w+ps.*ymm", v3)
    assert "zmm" not in v3
    wide = assembly(ir, cpu="x86-64-v4", features="-prefer-256-bit")
    assert "zmm" in wide


def test_features_are_added_and_removed() -> None:
    """``-fma`` leaves AVX2, ``+fma`` alone brings AVX."""
    assert "vfmadd" not in assembly(cpu="x86-64-v3", features="-fma")
    assert "ymm" in assembly(cpu="x86-64-v3", features="-fma")
    assert "vfmadd" in assembly(features="+fma")
    assert "vfmadd" in assembly(CLANG, features="+fma")


def test_features_that_a_function_names_are_kept() -> None:
    """A function that names AVX2 itself keeps it on an older processor."""
    named = SAXPY.replace("ATTRIBUTES", '"target-cpu"="x86-64" "target-features"="+avx2,+fma"')
    assert "vfmadd" in assembly(named, cpu="x86-64-v2")


def test_processors_of_other_machines() -> None:
    """aarch64: SVE only where the features have it."""
    assert not re.search(r"\bz\d+\.s", assembly(**ARM))
    assert re.search(r"\bz\d+\.s", assembly(**ARM, features="+v8.2a,+sve"))
    assert re.search(r"\bz\d+\.s", assembly(**ARM, cpu="neoverse-v1"))


def test_optimisation_levels() -> None:
    """0 keeps the stack's simple code, 2 is the default, 3 joins straight-line code to vectors."""
    assert "mulps" not in assembly(opt=0)
    assert assembly(opt=2) == assembly()
    assert "addps" not in assembly(PAIRS)
    assert "addps" in assembly(PAIRS, opt=3)


@pytest.mark.parametrize("options", [{}, {"cpu": "native"}, {"opt": 0}, {"opt": 3}], ids=str)
def test_all_compute_the_same(options) -> None:
    """Called before an export, which compiles with the same options."""
    x, y = np.arange(37, dtype=np.float32), np.ones(37, np.float32)
    packer.LLVMModule(PLAIN, functions=DECLARED, **options)["saxpy"](2.0, x, y, 37)
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_a_library_has_the_instructions(tmp_path) -> None:
    """The export compiles with them, beside C that is compiled as before."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    host = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    host.import_module(packer.LLVMModule(PLAIN, functions=DECLARED, cpu="x86-64-v3"))
    path = packer.export_library(host, tmp_path / "a.so")
    assert re.search(r"vfmadd\w+ps.*ymm", disassembled(path))
    assert runtime.load(path)["one"]() == 1


def test_packer_toml_has_the_options(tmp_path) -> None:
    """The kind ``llvm`` has the keys cpu, features and opt."""
    (tmp_path / "a.ll").write_text(PLAIN)
    text = '[module.a]\nkind = "llvm"\nsources = ["a.ll"]\ntarget = "x86_64-unknown-linux-gnu"\n'
    options = 'cpu = "x86-64-v3"\nfeatures = "-fma"\nopt = 3\n'
    (tmp_path / "packer.toml").write_text(text + options)
    root = read_project(tmp_path / "packer.toml").root
    expected = packer.LLVMModule(PLAIN, cpu="x86-64-v3", features="-fma", opt=3, **X86)
    assert root.get_source("s") == expected.get_source("s")
    (tmp_path / "packer.toml").write_text(text + 'opt = "fast"\n')
    with pytest.raises(packer.ExportError, match=r"\[module.a\]: opt 'fast': expected 0, 1, 2 or"):
        read_project(tmp_path / "packer.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpu": "x86-64-v9"}, "cpu 'x86-64-v9': LLVM has none of this name for 'x86_64-"),
        ({"features": "+nosuch,+fma"}, r"feature '\+nosuch': LLVM has none .* expected one that"),
        ({"cpu": "znver4", **ARM}, "cpu 'znver4': LLVM has none .* for 'aarch64"),
        ({"cpu": "native", "target": "riscv64-unknown-linux-gnu"}, "expected a target of this mac"),
    ],
)
def test_unknown_names_are_refused(options, message, capfd) -> None:
    """LLVM would print a warning and compile for the oldest processor."""
    module = packer.LLVMModule(PLAIN, **{**X86, **options})
    with pytest.raises(packer.ExportError, match=message):
        module.get_source("s")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpu": "a b"}, "cpu 'a b': expected a name, such as 'x86-64-v3'"),
        ({"features": "fma"}, r"features 'fma': expected names with \+ or -"),
        ({"opt": 4}, "opt 4: expected 0, 1, 2 or 3"),
        ({"opt": True}, "opt True: expected 0"),
    ],
)
def test_malformed_options_are_refused(options, message) -> None:
    """They are refused where they are given."""
    with pytest.raises(packer.ExportError, match=message):
        packer.LLVMModule(PLAIN, **options)


def test_an_object_for_each_level(tmp_path) -> None:
    """Own features are added to each level's."""
    levels, target = list(levels_of("x86_64").values())[1:], find_target("x86_64-linux-gnu")
    module = packer.LLVMModule(PLAIN, features="-prefer-256-bit", **X86)
    written = module.write_levels(tmp_path / "lib0", "o", target, levels)
    v2, v3, v4 = map(disassembled, written.variants)
    assert "mulps" in v2
    assert not re.search("[yz]mm", v2)
    assert "ymm" in v3
    assert "zmm" not in v3
    assert "zmm" in v4
    assert module.get_source("s") == assembly(features="-prefer-256-bit")


def test_a_processor_contradicts_the_levels(tmp_path) -> None:
    """One of them must be dropped."""
    module = packer.LLVMModule(PLAIN, cpu="znver4", **X86)
    with pytest.raises(packer.ExportError, match=r"cpu 'znver4' beside CPU levels.* drop one"):
        packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu="x86-64-v3"))
