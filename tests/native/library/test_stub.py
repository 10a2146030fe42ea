"""Stubs of machine code, read by a disassembler and run on each machine."""

from __future__ import annotations

import platform
import subprocess

import pytest

from ...support import needs
from ...support.native import INCLUDE
from ...support.paths import NATIVE

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}

# Prints the bytes of a stub; then calls a function through one, with all kinds of arguments.
DRIVER = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "library/stub.h"

static double sum(int a, int b, int c, int d, int e, int f, int g, int h, int i, double x) {
  return a + 10 * b + 100 * c + 1000 * d + 1e4 * e + 1e5 * f + 1e6 * g + 1e7 * h + 1e8 * i + x;
}

int main(void) {
  uint8_t code[STUB_NBYTES];
  double (*function)(int, int, int, int, int, int, int, int, int, double);
  if (stub_write(MACHINE, (uint64_t)(uintptr_t)sum, code) != 0) return 1;
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof code);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) return 2;
  __builtin___clear_cache((char *)page, (char *)page + 4096);
  memcpy(&function, &page, sizeof page);
  printf("%.1f\\n", function(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5));
  return stub_write(8, 0, code) == -1 ? 0 : 3;
}
"""


@pytest.mark.parametrize("machine", MACHINES)
def test_stub_passes_all_arguments(machine, tmp_path) -> None:
    """Integers in registers and on the stack, a double, and the result, on each machine."""
    compiler, run = ["cc"], []
    if machine != platform.machine():
        compiler = [needs.program(f"{machine}-linux-gnu-gcc")]
        run = [needs.program(f"qemu-{machine}")]
    (tmp_path / "driver.c").write_text(DRIVER)
    options = ["-static", f"-DMACHINE={MACHINES[machine]}", *(f"-I{path}" for path in INCLUDE)]
    sources = ["driver.c", str(NATIVE / "library" / "stub.c"), "-o", "driver"]
    subprocess.run([*compiler, *options, *sources], cwd=tmp_path, check=True)
    ran = subprocess.run([*run, "./driver"], cwd=tmp_path, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, b"987654321.5\n")
