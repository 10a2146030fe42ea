"""A C program that links libdso.a loads a library that leaves TVM's functions undefined."""

from __future__ import annotations

import subprocess

from ...support.libdso import compile_program, run_program
from ...support.paths import C_SOURCES

PROGRAM = r"""
#include <stdio.h>

#include "dso.h"

static int beside(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)args;
  *result = dso_int(count);
  return 0;
}

int main(int argc, char **argv) {
  (void)argc;
  dso_function *function = dso_function_new(beside, NULL, NULL);
  if (!function || dso_register_function("test.beside", function)) return 1;
  for (int i = 0; i < 3; i++) {
    dso_any result, args[] = {dso_int(1), dso_int(2)};
    dso_module *module = dso_load(argv[1], NULL);
    if (!module || dso_module_call(module, "call_global", &result, args, 2))
      return puts(dso_last_error()), 1;
    printf("%d ", (int)result.v_int64);
    if (dso_module_call(module, "fail", NULL, NULL, 0)) printf("%s\n", dso_last_error());
    dso_module_release(module);
  }
  dso_function_release(function);
  return 0;
}
"""


def test_program_loads_such_a_library(compile_library, tmp_path) -> None:
    """Look-ups, calls and errors use libdso, of which no symbol is global."""
    library = compile_library((C_SOURCES / "undefined.c").read_text())
    program = compile_program(PROGRAM, tmp_path / "program")
    assert run_program(program, library) == "2 KeyError: in parts\n" * 3
    nm = subprocess.run(["nm", "-D", program], capture_output=True, text=True, check=True)
    assert "TVM" not in nm.stdout
