"""The rules of a hardened load, on libraries of real compilers and linkers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ....support import needs
from ....support.hardened import CONSTRUCTOR, OFFENCES, PLAIN, compiled, refused


@pytest.mark.parametrize("rule", OFFENCES)
def test_each_offence_is_refused_by_its_rule(tmp_path: Path, rule: str) -> None:
    """And by no other one."""
    source, options = OFFENCES[rule]
    assert {found for found, _ in refused(compiled(source, tmp_path / "a.so", *options))} == {rule}


@pytest.mark.parametrize(
    ("compiler", "linker"),
    [
        *(("gcc", linker) for linker in ("bfd", "gold", "lld", "mold")),
        *(("clang", linker) for linker in ("bfd", "lld")),
    ],
)
@pytest.mark.parametrize("stripped", [False, True])
def test_a_compiler_adds_nothing_that_is_refused(
    tmp_path: Path, compiler: str, linker: str, stripped: bool
) -> None:
    """With and without symbols; a constructor beside it is found in both."""
    needs.program(compiler)
    needs.linker(linker)
    options = [f"-fuse-ld={linker}", *(["-s"] if stripped else [])]
    path = compiled(PLAIN, tmp_path / "plain.so", *options, compiler=compiler)
    assert refused(path) == []
    path = compiled(CONSTRUCTOR + PLAIN, tmp_path / "own.so", *options, compiler=compiler)
    ((rule, text),) = refused(path)
    assert rule == "constructors"
    assert ("'hello'" in text) is not stripped


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        ("musl-gcc", []),
        ("gcc", ["-static-libgcc"]),
        ("gcc", ["-nostartfiles"]),
        ("gcc", ["-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,now"]),
        ("gcc", ["-Wl,-z,pack-relative-relocs"]),
        ("gcc", ["-Wl,-z,lazy", "-Wl,-z,norelro"]),
        ("clang", ["-fuse-ld=lld", "-Wl,-z,pack-relative-relocs"]),
        ("aarch64-linux-gnu-gcc", []),
        ("aarch64-linux-gnu-gcc", ["-mbranch-protection=standard", "-s"]),
        ("riscv64-linux-gnu-gcc", []),
    ],
    ids=" ".join,
)
def test_other_ways_to_compile(tmp_path: Path, compiler: str, options: list[str]) -> None:
    """Nothing is refused, but a constructor."""
    needs.program(compiler)
    assert refused(compiled(PLAIN, tmp_path / "a.so", *options, compiler=compiler)) == []
    path = compiled(CONSTRUCTOR, tmp_path / "b.so", *options, compiler=compiler)
    assert [rule for rule, _ in refused(path)] == ["constructors"]


@pytest.mark.parametrize("body", ['__asm__ volatile("");', "made = 1;", "made = made + 1;"])
def test_a_small_constructor_is_one(tmp_path: Path, body: str) -> None:
    """Even if it does nothing, or stores a number."""
    head = f"{PLAIN}static volatile int made;\n__attribute__((constructor)) "
    ((rule, text),) = refused(compiled(f"{head}static void f(void) {{{body}}}", tmp_path / "a.so"))
    assert rule == "constructors"
    assert "is not the start-up code of a known compiler" in text
    ((rule, text),) = refused(compiled(f"{head}void f(void) {{{body}}}", tmp_path / "b.so"))
    assert (rule, text.endswith("calls 'f'")) == ("constructors", True)
