"""A carried library in a C program: its host code is a node; damage names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from ...support.libdso import SANITIZE, compile_program, run_program

PROGRAM = """
#include <stdio.h>
#include "dso.h"

static int verify(void *context, const char *path, const void *bytes, size_t nbytes) {
  (void)context, (void)bytes, (void)nbytes;
  printf("%s ", path ? "path" : "bytes");
  return 0;
}

int main(int argc, char **argv) {
  dso_any result, args[] = {dso_int(40), dso_int(2)};
  dso_options options = {sizeof options, verify, 0, 0, 0, 0, 0, 0, 0};
  dso_module *const *imports, *module = dso_load(argv[argc - 1], &options);
  if (!module) return puts(dso_last_error()) < 0;
  printf("%d ", (int)dso_module_imports(module, &imports));
  printf("%s ", dso_module_type_key(imports[0]));
  if (dso_module_call(module, "add", &result, args, 2)) return puts(dso_last_error()) < 0;
  printf("%d\\n", (int)result.v_int64);
  dso_module_release(module);
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Under ASan and UBSan."""
    path = tmp_path_factory.mktemp("program") / "program"
    return compile_program(PROGRAM, path, *SANITIZE)


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """A library that carries one with `add`."""
    functions = {"add": "int(int a, int b)"}
    inner = packer.CSourceModule("int add(int a, int b) { return a + b; }", functions=functions)
    packer.export_library(inner, tmp_path / "inner.so")
    root = packer.CSourceModule("int one(void) { return 1; }", functions={"one": "int(void)"})
    root.import_module(runtime.load(tmp_path / "inner.so"))
    return packer.export_library(root, tmp_path / "outer.so")


def test_carried_library_is_verified_with_the_whole_and_called(program, outer) -> None:
    """It is part of the verified bytes, so the program is asked once."""
    assert run_program(program, outer) == "path 1 library 42\n"


def test_damaged_carried_library(program, outer) -> None:
    """The text is Python's."""
    data = bytearray(outer.read_bytes())
    at = data.rindex(b"\x7fELF")
    data[at + 4] = 9
    outer.write_bytes(data)
    with pytest.raises(runtime.LibraryLoadError) as refused:
        runtime.load(outer)
    assert run_program(program, outer) == f"path LibraryLoadError: {refused.value}\n"
