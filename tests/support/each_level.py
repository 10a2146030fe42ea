"""Libraries with levels of processors: loaded at each one, and run by emulated processors."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import packer
import runtime

from . import needs

X86_LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
ARM_LEVELS = ("armv8-a", "armv8.2-a", "armv9-a")
# Processors that qemu emulates, and the best of X86_LEVELS that each can run.
PROCESSORS = {"Nehalem": "x86-64-v2", "Haswell": "x86-64-v3"}

# The level that code was compiled for, as a number; for C and C++.
LEVEL_MACRO = """
#if defined(__AVX512F__)
#define LEVEL 4
#elif defined(__AVX2__)
#define LEVEL 3
#elif defined(__SSE4_2__)
#define LEVEL 2
#elif defined(__ARM_FEATURE_SVE2)
#define LEVEL 9
#elif defined(__ARM_FEATURE_ATOMICS)
#define LEVEL 82
#else
#define LEVEL 1
#endif
"""

_copies = itertools.count()

# Opens a library by dlopen, and prints the results of functions without arguments.
CALLER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) return fprintf(stderr, "%s\\n", dlerror()), 1;
  for (int i = 2; i < argc; i++) {
    long (*function)(void) = (long (*)(void))dlsym(library, argv[i]);
    if (function == NULL) return fprintf(stderr, "%s\\n", dlerror()), 1;
    printf("%ld\\n", function());
  }
  return 0;
}
"""


@contextlib.contextmanager
def forced(level: str) -> Iterator[None]:
    """Let loads choose this level."""
    before = os.environ.get("DSO_CPU")
    os.environ["DSO_CPU"] = level
    try:
        yield
    finally:
        del os.environ["DSO_CPU"]
        if before is not None:
            os.environ["DSO_CPU"] = before


def each_level(
    path: Path, levels: Sequence[str] = X86_LEVELS
) -> Iterator[tuple[str, runtime.Module]]:
    """Load a copy of a library at each of its levels that this machine has."""
    for level in levels:
        # Another name each time: a library may stay loaded, and its file must not change then.
        copy = path.with_name(f"{level}-{next(_copies)}-{path.name}")
        with forced(level):
            try:
                model = runtime.load(shutil.copyfile(path, copy))
            except packer.LibraryLoadError as error:
                assert "expected a processor with" in error.message
                continue
        yield level, model


def called(
    path: Path, functions: Sequence[str], emulator: Sequence[str] = (), compiler: str = "cc"
) -> list[int]:
    """Call functions of a library in a C program, on another processor."""
    if emulator:
        needs.program(emulator[0])
    program = path.with_name("caller")
    source = program.with_suffix(".c")
    source.write_text(CALLER)
    command = [needs.program(compiler), source, "-o", program, "-ldl"]
    subprocess.run(command, check=True)
    ran = subprocess.run(
        [*emulator, program, path, *functions], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stderr}"
    return [int(line) for line in ran.stdout.split()]
