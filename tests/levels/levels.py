"""Libraries with CPU levels, and processes that use one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import packer

from ..support import needs
from ..support.dso_driver import installed_program
from ..support.paths import C_SOURCES

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
BUILD = packer.Build(cpu=LEVELS)
# A feature of each level that no lower level has, as Linux names it.
_FLAGS = {"x86-64-v1": "lm", "x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}
# qemu's processors, and the best level of each.
PROCESSORS = {"Nehalem": "x86-64-v2", "Haswell": "x86-64-v3"}
# Returns the level that it was compiled for.
SOURCE = """
#include <stdint.h>
int counter = 40;
int64_t level(void) {
#if defined(__AVX512F__)
  return 4;
#elif defined(__AVX2__)
  return 3;
#elif defined(__SSE4_2__)
  return 2;
#else
  return 1;
#endif
}
int64_t add(int64_t a, int64_t b) { return a + b; }
int count(void) { return ++counter; }
"""


def require_levels(*names: str) -> None:
    """Skip the test unless this processor has the levels."""
    flags = Path("/proc/cpuinfo").read_text().split()
    for name in names:
        needs.hardware(_FLAGS[name] in flags, name)


def export(folder: Path, *sources: str, build=BUILD, name="model.so", **options) -> Path:
    """Export C sources, each a module, for CPU levels."""
    module = packer.CSourceModule(sources[0], functions="auto")
    for source in sources[1:]:
        module.import_module(packer.CSourceModule(source, functions="auto"))
    return packer.export_library(module, folder / name, build=build, **options)


def run_c(path: Path, how: str = "dso", *, level: str = "", before=()) -> tuple[str, str]:
    """Return the output and the errors of a C program that loads a library with dso or dlopen."""
    program = installed_program(C_SOURCES / "level_of.c")
    ran = subprocess.run(
        [*before, str(program), how, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"DSO_CPU": level},
        timeout=120,
    )
    errors = [line for line in ran.stderr.splitlines() if not line.startswith("qemu-x86_64: warn")]
    return ran.stdout.strip(), "\n".join(errors)


def run_python(path: Path, code: str, *, level: str = "", before=()) -> str:
    """Return the output of Python code; `m` is the library, loaded by runtime."""
    begin = f"import runtime\nm = runtime.load({str(path)!r})\n"
    ran = subprocess.run(
        [*before, sys.executable, "-P", "-c", begin + code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"DSO_CPU": level},
        timeout=240,
    )
    return ran.stdout.strip() if ran.returncode == 0 else ran.stderr.strip().splitlines()[-1]


def qemu(processor: str) -> list[str]:
    """Return the command that runs a program on another processor."""
    return [needs.program("qemu-x86_64"), "-cpu", processor]
