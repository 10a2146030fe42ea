"""Assembler and Fortran as sources: compiled, linked, and declared by options or by a header."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

import runtime
from packer import StaticLibraryModule, export_library
from runtime.error import ExportError, ToolchainError

from ...support import needs
from ...support.command_line import Packer, done

ADD = {
    "x86_64": "leal (%rdi,%rsi), %eax\n    ret",
    "aarch64": "add w0, w0, w1\n    ret",
}
ASSEMBLER = """#define NAME add
    .text
    .globl NAME
    .type NAME, %function
NAME:
    BODY
    .size NAME, .-NAME
    .section .note.GNU-stack,"",%progbits
"""
FORTRAN = """
module sums
  use iso_c_binding
contains
  function total(x, n) result(sum) bind(C)
    integer(c_long), value :: n
    real(c_double), intent(in) :: x(n)
    real(c_double) :: sum
    integer(c_long) :: i
    sum = 0
    do i = 1, n
      sum = sum + x(i)
    end do
  end function
end module
"""


def assembler(folder: Path) -> Path:
    """A file of assembler that the preprocessor reads."""
    body = ADD.get(platform.machine()) or pytest.skip("assembler of another machine")
    (folder / "add.S").write_text(ASSEMBLER.replace("BODY", body))
    return folder / "add.S"


def test_assembler_is_a_source(tmp_path: Path, packer: Packer) -> None:
    """Its functions are declared, also by a header beside it."""
    path = assembler(tmp_path)
    module = StaticLibraryModule(path, {"add": "int(int a, int b)"})
    model = runtime.load(export_library(module, tmp_path / "a.so"))
    assert model["add"](40, 2) == 42
    (tmp_path / "kit.h").write_text("int add(int a, int b);\n")
    done(packer("export", "b.so", "add.S", "--header", "kit.h"))
    assert runtime.load(tmp_path / "b.so")["add"](40, 2) == 42


def test_fortran_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function with bind(C) gets an array; module files are not left in the folder."""
    needs.program("gfortran")
    monkeypatch.chdir(tmp_path)
    Path("sums.f90").write_text(FORTRAN)
    declared = {"total": "double(const double *x, long n)"}
    module = StaticLibraryModule("sums.f90", declared)
    model = runtime.load(export_library(module, "sums.so"))
    assert model["total"](np.arange(4.0), 4) == 6
    assert not Path("sums.mod").exists()


def test_wrong_sources_are_refused(tmp_path: Path) -> None:
    """A file that is missing, and one that the assembler refuses, with its message."""
    with pytest.raises(ExportError, match=r"none\.s: cannot be read"):
        StaticLibraryModule(tmp_path / "none.s")
    (tmp_path / "bad.s").write_text("    no such instruction\n")
    module = StaticLibraryModule(tmp_path / "bad.s", {"f": "int(int a)"})
    with pytest.raises(ToolchainError, match=r"bad\.s"):
        export_library(module, tmp_path / "bad.so")
