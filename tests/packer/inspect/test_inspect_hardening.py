"""inspect_library: RELRO, branch protection, the stack and linkage, against readelf."""

from __future__ import annotations

import re
import subprocess

import pytest

from packer.inspect import inspect_library, render

from ...support import needs
from .inspected import tool


@pytest.mark.parametrize(
    ("options", "relro"),
    [
        (["-Wl,-z,relro,-z,now"], "full"),
        (["-Wl,-z,relro,-z,lazy"], "partial"),
        (["-Wl,-z,norelro"], "none"),
    ],
)
def test_relro(options, relro, compile_library) -> None:
    """Full needs both RELRO and immediate binding, as readelf shows them."""
    path = compile_library('int puts(const char *); int f(void) { return puts(""); }', *options)
    assert inspect_library(path).hardening.relro == relro
    assert any("GNU_RELRO" in line for line in tool("readelf", "-lW", path)) == (relro != "none")


@pytest.mark.parametrize(
    ("command", "option", "marks"),
    [
        ("gcc", "-fcf-protection=full", ("IBT", "SHSTK")),
        ("gcc", "-fcf-protection=none", ()),
        ("aarch64-linux-gnu-gcc", "-mbranch-protection=standard", ("BTI", "PAC")),
        ("aarch64-linux-gnu-gcc", "-mbranch-protection=none", ()),
    ],
)
def test_branch_protection_agrees_with_readelf(command, option, marks, tmp_path) -> None:
    """CET and BTI: the marks of the linker for the whole file."""
    needs.program(command)
    path = tmp_path / "marked.so"
    source = tmp_path / "marked.c"
    source.write_text("int f(void) { return 1; }")
    compiled = [command, "-shared", "-fPIC", "-nostdlib", option, source, "-o", path]
    subprocess.run(compiled, check=True)
    report = inspect_library(path)
    assert report.hardening.branch_protection == marks
    features = [line for line in tool("readelf", "-nW", path) if "feature: " in line]
    assert [set(line.split(": ")[-1].split(", ")) for line in features] == [set(marks)] * bool(
        marks
    )
    assert (f"; {', '.join(marks)}\n" in render(report)) == bool(marks)


def test_executable_stack_is_shown_and_is_a_problem(compile_library) -> None:
    """A load refuses it, and the report states that."""
    path = compile_library("int f;", "-Wl,-z,execstack", "-Wl,--no-warn-execstack")
    report = inspect_library(path)
    assert not report.hardening.nx
    assert "NX no" in render(report)
    assert any(p.startswith("a load would refuse it: ") for p in report.problems)


def test_linkage_agrees_with_readelf(compile_library, packed_library) -> None:
    """Needed libraries, soname, RPATH and RUNPATH are listed; they load."""
    old = compile_library(
        "int f;", "-Wl,-rpath,$ORIGIN/a:/b", "-Wl,--disable-new-dtags", "-Wl,-soname,libf.so"
    )
    new = compile_library("int f;", "-Wl,-rpath,/c", "-Wl,--enable-new-dtags")
    assert inspect_library(old).linkage.rpath == ("$ORIGIN/a:/b",)
    assert inspect_library(old).linkage.soname == "libf.so"
    assert inspect_library(new).linkage.runpath == ("/c",)
    assert "RUNPATH /c" in render(inspect_library(new))
    assert inspect_library(new).problems == ()
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", "\n".join(tool("readelf", "-dW", packed_library)))
    assert list(inspect_library(packed_library).linkage.needed) == needed


def test_audit_and_filter_are_listed_and_are_problems(compile_library) -> None:
    """A load refuses libraries with either."""
    audit = inspect_library(compile_library("int f;", "-Wl,--audit=/x/audit.so"))
    assert audit.linkage.audit == ("/x/audit.so",)
    assert "audit: /x/audit.so" in render(audit)
    other = inspect_library(compile_library("int f;", "-Wl,-F,libother.so"))
    assert other.linkage.filter == ("libother.so",)
    assert audit.problems
    assert other.problems
