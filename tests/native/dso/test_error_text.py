"""The text of an error is UTF-8, whatever bytes a file or a program put into it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import runtime

from ...support.libdso import SANITIZE, compile_program

SET = """
#include <stdio.h>
#include "dso.h"
int main(int argc, char **argv) {
  (void)argc;
  dso_set_error(argv[1], argv[2]);
  printf("%s\\n", dso_last_error_kind());
  printf("%s\\n", dso_last_error());
  return 0;
}
"""
LOAD = """
#include <stdio.h>
#include "dso.h"
int main(int argc, char **argv) {
  (void)argc;
  return dso_load(argv[1], NULL) ? 1 : printf("%s", dso_last_error()) < 0;
}
"""
DAMAGED = [
    b"plain",
    "grün \U0001f600".encode(),
    b"a\xffb\xfe",
    b"\xc3",
    b"\xe2\x82",
    b"\xe2\x82(",
    b"\xed\xa0\x80 surrogate",
    b"\xf0\x9f\x98 cut",
    b"\xf5\x80\x80\x80",
    b"\xc0\xafoverlong",
    b"\x80" * 300 + b"\xf0\x9f",
]


@pytest.fixture(scope="module")
def setter(tmp_path_factory) -> Path:
    """Raise the error of the command line and print it."""
    return compile_program(SET, tmp_path_factory.mktemp("set") / "set", *SANITIZE)


def run(program: Path, *arguments: bytes | Path) -> bytes:
    """The output of a program that must succeed."""
    return subprocess.run([program, *arguments], capture_output=True, check=True).stdout


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_invalid_bytes_are_replaced_as_python_does(setter, text) -> None:
    """In the kind and in the message."""
    shown = text.decode(errors="replace")
    assert run(setter, b"A" + text, text).decode() == f"A{shown}\nA{shown}: {shown}\n"


def test_damaged_symbol_name_is_shown_as_in_python(compile_library, tmp_path) -> None:
    """The loader's message names a symbol whose name is not UTF-8."""
    whole = compile_library("int missing_name(void); int f(void) { return missing_name(); }")
    path = tmp_path / "damaged.so"
    path.write_bytes(whole.read_bytes().replace(b"missing_name", b"missing_\xff\xc3\xa4\xe2"))
    with pytest.raises(runtime.LibraryLoadError, match="missing_\ufffdä\ufffd") as raised:
        runtime.load(path)
    loader = compile_program(LOAD, tmp_path / "load", *SANITIZE)
    assert run(loader, path).decode() == f"LibraryLoadError: {raised.value}"


NULLS = """
#include <stdio.h>
#include "dso.h"
static void say(int is_refused) {
  printf("%d %s\\n", is_refused, dso_last_error());
}
static int see_function(void *c, const char *n, const char *s) { return (void)c, (void)n, s == n; }
static int see_weight(void *c, const char *n, const DLTensor *t) { return (void)c, (void)n, !t; }
int main(int argc, char **argv) {
  DLTensor weight;
  const char *json;
  dso_module *none = dso_load("missing.so", NULL), *program = dso_system_library("");
  (void)argc, (void)argv;
  say(dso_load(NULL, NULL) == NULL);
  say(dso_load_bytes(NULL, 1, NULL) == NULL);
  say(dso_system_library(NULL) == NULL);
  say(dso_module_call(none, "f", NULL, NULL, 0));
  say(dso_module_function(program, NULL) == NULL);
  say(dso_module_entry(none) == NULL);
  say(dso_module_functions(none, see_function, NULL));
  say(dso_module_weight(none, "w", &weight));
  say(dso_module_weight(program, NULL, &weight));
  say(dso_module_weights(none, see_weight, NULL));
  say(dso_module_metadata(none, &json));
  say(dso_module_import(none, program));
  say(dso_module_import(program, none));
  say(dso_register_function(NULL, NULL));
  dso_module_release(none);
  dso_module_release(program);
  return 0;
}
"""


def test_null_is_refused_by_name(tmp_path) -> None:
    """The result of a load that failed does not end the program."""
    program = compile_program(NULLS, tmp_path / "nulls", *SANITIZE)
    lines = run(program).decode().splitlines()
    expected = [
        "dso_load: expected a path",
        "dso_load_bytes: expected bytes",
        "dso_system_library: expected a prefix",
        "dso_module_function: expected a module",
        "dso_module_function: expected a name",
        "dso_module_entry: expected a module",
        "dso_module_functions: expected a module",
        "dso_module_weight: expected a module",
        "dso_module_weight: expected a name",
        "dso_module_weights: expected a module",
        "dso_module_metadata: expected a module",
        "dso_module_import: expected a module",
        "dso_module_import: expected an import",
        "dso_register_function: expected a name",
    ]
    assert [line.split(" ", 1)[1] for line in lines] == [
        f"TypeError: {text}, found NULL" for text in expected
    ]
    assert all(line.split()[0] in ("1", "-1") for line in lines)
