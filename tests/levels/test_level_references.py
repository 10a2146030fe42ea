"""Code of C and C++ that refers to functions and data in each way, at every level."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import packer

from ..support import needs
from ..support.each_level import LEVEL_MACRO, X86_LEVELS, called, each_level

ADDRESS_TAKEN = """
int table_a(void) { return LEVEL; }
int table_b(void) { return 10 * LEVEL; }
int (*functions_of_table[])(void) = {table_a, table_b};
int table(void) { return functions_of_table[0]() + functions_of_table[1](); }
"""
ALIAS = """
int aliased(void) { return LEVEL; }
int other_name(void) __attribute__((alias("aliased")));
int alias(void) { return 10 * other_name() + aliased(); }
"""
CLONES = """
__attribute__((target_clones("avx2", "default"))) int sum_below(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i;
  return sum;
}
int clones(void) { return 45 == sum_below(10) ? LEVEL : -1; }
"""
WEAK = """
__attribute__((weak)) int replaced(void) { return 1; }
__attribute__((weak)) int absent(void);
int weak(void) { return 10 * replaced() + (absent ? -1 : LEVEL); }
"""
STRONG = "static int two(void) { return 2; }  int replaced(void) { return two(); }"
ASSEMBLY = """
__asm__(".text\\n.globl forty\\n.type forty, @function\\nforty:\\n mov $40, %eax\\n ret\\n");
int forty(void);
int assembly(void) { return forty() + LEVEL; }
"""
VIRTUAL = """
struct Base { virtual int f() { return LEVEL; }  virtual ~Base() {} };
struct Derived : Base { int f() override { return 10 * LEVEL; } };
namespace { struct Hidden : Base { int f() override { return 100 * LEVEL; } }; }
extern "C" int virtuals() {
  Base *all[] = {new Base, new Derived, new Hidden};
  int sum = 0;
  for (Base *one : all) {
    sum += one->f();
    if (dynamic_cast<Hidden *>(one)) sum += 1000;
    delete one;
  }
  return sum;
}
"""
LIBRARY = """
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
namespace { struct Local { int value; }; }
extern "C" int standard() {
  const std::function<int(int)> add = [](int x) { return x + LEVEL; };
  auto numbers = std::make_shared<std::vector<int>>(3, add(1));
  std::ostringstream text;
  text << "abc" << numbers->back();
  const bool matches = text.str().substr(0, 3) == "abc";
  int found = -1;
  std::thread([&] {
    try {
      if (matches) throw Local{numbers->back()};
    } catch (const Local &local) {
      found = local.value;
    }
  }).join();
  return found;
}
"""
# Code that exists once calls a level, and a level calls it.
LOWEST = """
static __thread int calls = 100;
static int level_at_start;
int level(void);
__attribute__((constructor)) static void start(void) { level_at_start = level(); }
int once(void) { return ++calls; }
int at_start(void) { return level_at_start; }
"""
CALLS_LOWEST = """
int once(void);
int level(void) { return LEVEL; }
int calling(void) { return 10 * once() + LEVEL; }
"""

SOURCES = {
    "c": (ADDRESS_TAKEN, ALIAS, CLONES, WEAK, STRONG, ASSEMBLY, LOWEST, CALLS_LOWEST),
    "cc": (VIRTUAL, LIBRARY),
}
# By function the result at a level.
EXPECTED = {
    "table": lambda level: 11 * level,
    "alias": lambda level: 11 * level,
    "clones": lambda level: level,
    "weak": lambda level: 20 + level,
    "assembly": lambda level: 40 + level,
    "virtuals": lambda level: 111 * level + 1000,
    "standard": lambda level: level + 1,
    "at_start": lambda level: level,
    "calling": lambda level: 1010 + level,
}


def make_module() -> packer.CSourceModule:
    """One module for each source; the first one imports the others."""
    modules = []
    for fmt, texts in SOURCES.items():
        for text in texts:
            found = {name: "int(void)" for name in EXPECTED if re.search(rf"\b{name}\(", text)}
            libraries = ["stdc++"] if fmt == "cc" else []
            made = packer.CSourceModule(
                LEVEL_MACRO + text, fmt=fmt, functions=found, libraries=libraries
            )
            modules.append(made)
    first, *others = modules
    for other in others:
        first.import_module(other)
    return first


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> tuple[Path, list[str]]:
    """The library, and the steps of its export."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    path, steps = tmp_path_factory.mktemp("code") / "code.so", []
    packer.export_library(
        make_module(), path, progress=steps.append, build=packer.Build(cpu=X86_LEVELS)
    )
    return path, steps


def test_every_level_runs_its_code(library) -> None:
    """Tables, aliases, clones, weak functions, virtual functions, the standard library."""
    numbers = []
    for i, (name, model) in enumerate(each_level(library[0])):
        expected = {function: result(i + 2) for function, result in EXPECTED.items()}
        assert {function: model[function]() for function in EXPECTED} == expected, name
        numbers.append(name)
    assert numbers


def test_only_the_source_with_a_constructor_is_of_the_lowest_level(library) -> None:
    """The export says so, with the reason."""
    notes = [step for step in library[1] if "x86-64-v2 only" in step]
    assert len(notes) == 1
    assert "it has constructors or destructors" in notes[0]


def test_the_library_exports_the_names_of_one_level(library, tmp_path) -> None:
    """The dynamic symbols are as without levels, and the record of levels."""
    plain = packer.export_library(make_module(), tmp_path / "plain.so")
    with_levels, without = (exported(path) for path in (library[0], plain))
    named = {name for name in with_levels if not name.startswith("_Z")}
    assert named - without == {"__packer_cpu_levels"}
    assert without - with_levels <= {name for name in without if name.startswith("_Z")}


def exported(path: Path) -> set[str]:
    """The names that a library defines, as nm reads them."""
    command = [needs.program("nm"), "-D", "--defined-only", "--format=just-symbols", path]
    return set(subprocess.check_output(command, text=True).split())


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_every_linker_gives_the_same_results(linker, tmp_path) -> None:
    """Objects of levels are merged and linked by each."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    needs.linker(linker)
    options = [f"-fuse-ld={linker}"]
    path = packer.export_library(
        make_module(), tmp_path / "code.so", options=options, build=packer.Build(cpu=X86_LEVELS[:2])
    )
    for i, (_, model) in enumerate(each_level(path, X86_LEVELS[:2])):
        expected = [result(i + 2) for result in EXPECTED.values()]
        assert [model[function]() for function in EXPECTED] == expected


def test_clang_gives_the_same_results(tmp_path, monkeypatch) -> None:
    """Its objects have other sections and symbols than GCC's."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    monkeypatch.setenv("CC", needs.program("clang"))
    monkeypatch.setenv("CXX", needs.program("clang++"))
    path = packer.export_library(
        make_module(), tmp_path / "code.so", build=packer.Build(cpu=X86_LEVELS[:2])
    )
    for i, (_, model) in enumerate(each_level(path, X86_LEVELS[:2])):
        expected = [result(i + 2) for result in EXPECTED.values()]
        assert [model[function]() for function in EXPECTED] == expected


def test_nehalem_runs_all_of_it(library) -> None:
    """Under an emulator that ends a program at an unknown instruction."""
    found = called(library[0], list(EXPECTED), ["qemu-x86_64", "-cpu", "Nehalem"])
    assert found == [result(2) for result in EXPECTED.values()]
