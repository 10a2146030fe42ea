"""C++ at all levels: templates, exceptions, static constructors, thread-locals, shared data."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import packer

from ..support import needs
from ..support.each_level import (
    ARM_LEVELS,
    LEVEL_MACRO,
    PROCESSORS,
    X86_LEVELS,
    called,
    each_level,
)

# Read by both modules: a template, an inline function with a static, and an inline variable.
SHARED = """
#pragma once
#include <stdexcept>
#include <string>
#include <vector>
inline long count = 100;
inline long *next() { static long number = 7; return &number; }
template <class T> T total(const T *values, long n) {
  T sum{};
  for (long i = 0; i < n; i++) sum += values[i] * values[i];
  return sum;
}
struct TooLarge : std::runtime_error { using std::runtime_error::runtime_error; };
extern std::vector<long> table;
extern long constructed;
long visit();
void refuse(long value);
"""

# The fast code: it has neither constructors nor thread-locals, so it is compiled for all levels.
FAST = (
    LEVEL_MACRO
    + """
#include "shared.h"
#include <map>
extern "C" {
long level() { return LEVEL; }
double squares(const double *x, long n) { return total(x, n); }
long sum_of_table() { return total(table.data(), long(table.size())); }
long count_here() { return (long)&count; }
long next_here() { return (long)next(); }
long visits() { return visit() + visit(); }
long constructions() { return constructed; }
long caught() {
  try { refuse(11); } catch (const TooLarge &error) { return std::string(error.what()).size(); }
  return -1;
}
void thrown(long value) { refuse(value); }
long mapped() {
  std::map<std::string, long> lengths;
  for (const char *word : {"one", "three", "eleven"}) lengths[word] = std::string(word).size();
  long sum = 0;
  for (const auto &[word, length] : lengths) sum = 10 * sum + length;
  return sum;
}
}
"""
)

# Static constructors and a thread-local.
STATEFUL = (
    LEVEL_MACRO
    + """
#include "shared.h"
long constructed;
static std::vector<long> squares_below(long n) {
  std::vector<long> made;
  for (long i = 0; i < n; i++) made.push_back(i * i);
  constructed++;
  return made;
}
std::vector<long> table = squares_below(10);
static thread_local long visited = 0;
long visit() { return ++visited; }
void refuse(long value) {
  if (value > 10) throw TooLarge("too large: " + std::to_string(value));
}
extern "C" {
long level_of_state() { return LEVEL; }
long count_there() { return (long)&count; }
long next_there() { return (long)next(); }
}
"""
)

SUM_OF_TABLE = sum(i**4 for i in range(10))
# Results that are the same at every level and on every machine.
SAME = {
    "sum_of_table": SUM_OF_TABLE,
    "constructions": 1,
    "caught": len("too large: 11"),
    "mapped": 635,
}


def cpp_module(folder: Path) -> packer.CSourceModule:
    """The fast module, which imports the other one."""
    (folder / "shared.h").write_text(SHARED)
    options = {
        "fmt": "cc", "functions": "auto", "include": [folder], "options": ["-std=c++17"],
        "libraries": ["stdc++"],
    }  # fmt: skip
    fast, stateful = (packer.CSourceModule(text, **options) for text in (FAST, STATEFUL))
    fast.import_module(stateful)
    return fast


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """Three levels of both modules."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    folder = tmp_path_factory.mktemp("cpp")
    return packer.export_library(
        cpp_module(folder), folder / "cpp.so", build=packer.Build(cpu=X86_LEVELS)
    )


def test_every_level_gives_the_same_results(library) -> None:
    """Templates, exceptions and containers; each level runs its code."""
    x = np.arange(100.0)
    found = []
    for name, model in each_level(library):
        assert {function: model[function]() for function in SAME} == SAME, name
        assert model["squares"](x, 100) == x @ x
        found.append(model["level"]())
    assert found == [2, 3, 4][: len(found)]
    assert len(found) >= 1


def test_a_source_with_constructors_is_compiled_for_the_lowest_level(library) -> None:
    """So they run once, and a thread-local is one variable."""
    for _, model in each_level(library):
        assert model["level_of_state"]() == 2
        assert model["constructions"]() == 1


def test_thread_locals_are_those_of_the_thread(library) -> None:
    """Two visits, then two more; a second thread begins again."""
    for _, model in each_level(library):
        visits = model["visits"]
        with ThreadPoolExecutor(1) as thread:
            assert [visits(), visits(), thread.submit(visits).result()] == [3, 7, 3]


def test_an_exception_reaches_python(library) -> None:
    """It passes from the lowest level's code through that of each level to the wrapper."""
    for _, model in each_level(library):
        model["thrown"](3)
        with pytest.raises(Exception, match="too large: 12"):
            model["thrown"](12)


def test_data_of_two_modules_is_one_object(library) -> None:
    """An inline variable, and the static variable of an inline function."""
    for _, model in each_level(library):
        assert model["count_here"]() == model["count_there"]()
        assert model["next_here"]() == model["next_there"]()


@pytest.mark.parametrize(("processor", "level"), PROCESSORS.items())
def test_an_older_processor_runs_its_level(library, processor, level) -> None:
    """The loader is dlopen; an instruction that the processor lacks would end the program."""
    emulator = ["qemu-x86_64", "-cpu", processor]
    found = called(library, ["level", "visits", *SAME], emulator)
    assert found == [X86_LEVELS.index(level) + 2, 3, *SAME.values()]


def test_the_emulated_processor_lacks_newer_instructions(tmp_path) -> None:
    """The control of the test before: the same code, compiled for v3 alone, ends there."""
    text = "double scaled(double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += "
    text += "x[i] * 3 + 1; return s; } long run(void) { double x[64] = {1}; "
    text += "return (long)scaled(x, 64); }"
    options = ["-O3", "-march=x86-64-v3", "-mprefer-vector-width=256", "-ffast-math"]
    module = packer.CSourceModule(text, functions={"run": "long(void)"}, options=options)
    path = packer.export_library(module, tmp_path / "v3.so")
    assert called(path, ["run"], ["qemu-x86_64", "-cpu", "Haswell"]) == [67]
    with pytest.raises(AssertionError, match="-4: "):  # SIGILL
        called(path, ["run"], ["qemu-x86_64", "-cpu", "Nehalem"])


@pytest.mark.parametrize(("processor", "level"), [("cortex-a53", 1), ("max", 9)])
def test_levels_of_aarch64(processor, level, tmp_path) -> None:
    """The same code, made by a cross compiler."""
    needs.program("aarch64-linux-gnu-g++", "qemu-aarch64")
    path = packer.export_library(
        cpp_module(tmp_path),
        tmp_path / "arm.so",
        build=packer.Build(target="aarch64-linux-gnu", cpu=ARM_LEVELS),
    )
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", processor]
    found = called(path, ["level", "visits", *SAME], emulator, "aarch64-linux-gnu-gcc")
    assert found == [level, 3, *SAME.values()]
