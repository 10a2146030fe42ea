"""NULL for each pointer of each public function: TypeError, or what dso.h allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import packer

from ...support.libdso import compile_program, run_program

HEADER = Path(__file__).parents[3] / "runtime/include/dso.h"
# By C type: an argument that is right.
RIGHT = {
    "const char *": '"dso-no-such-name"',
    "const dso_options *": "NULL",
    "const void *": '"bytes"',
    "size_t": "1",
    "dso_module *": "module",
    "const dso_module *": "module",
    "dso_any *": "&result",
    "const dso_any *": "&value",
    "int32_t": "1",
    "int64_t": "0",
    "int64_t *": "&extent",
    "dso_session *": "session",
    "dso_visit_function": "visit_function",
    "dso_visit_weight": "visit_weight",
    "void *": "NULL",
    "dso_safe_call": "call",
    "void (*)(void *)": "NULL",
    "dso_function *": "function",
    "const char **": "&text",
    "dso_module *const **": "&imports",
    "DLTensor *": "&tensor",
    "const DLTensor *": "&tensor",
    "DLDevice": "cpu",
    "DLDataType": "float32",
    "const int64_t *": "&extent",
    "const dso_type *": "&type",
}
# The pointers that dso.h allows to be NULL.
ALLOWED = {
    *(f"dso_{name}.options" for name in ("load", "load_bytes")),
    *(f"dso_{name}.result" for name in ("module_call", "function_call")),
    *(f"dso_{name}.context" for name in ("module_functions", "module_weights")),
    *(f"dso_module_{name}.module" for name in ("retain", "release")),
    *(f"dso_set_error.{name}" for name in ("kind", "message")),
    *(f"dso_function_new.{name}" for name in ("handle", "end")),
    "dso_module_imports.imports",
    "dso_function_release.function",
    "dso_session_release.session",
    "dso_session_call.result",
}
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "dso.h"
static void say(const char *key) {
  printf("%s\t%s\n", key, dso_last_error());
  dso_set_error("Before", "");
}
static int call(void *h, const dso_any *a, int32_t n, dso_any *r) {
  (void)h, (void)a, (void)n, (void)r;
  return 0;
}
static int visit_function(void *c, const char *n, const char *s) {
  (void)c, (void)n, (void)s;
  return 0;
}
static int visit_weight(void *c, const char *n, const DLTensor *t) {
  (void)c, (void)n, (void)t;
  return 0;
}
int main(void) {
  dso_module *module = dso_system_library(""), *const *imports;
  dso_function *function = dso_function_new(call, NULL, NULL);
  const char *text;
  dso_any result = dso_none(), value = dso_int(1);
  dso_session *session = dso_session_new(module, 0);
  int64_t extent = 1;
  DLDevice cpu = {1, 0};
  DLDataType float32 = {2, 32, 1};
  float number = 1;
  DLTensor tensor = {&number, {1, 0}, 1, {2, 32, 1}, &extent, NULL, 0};
  dso_type type = {sizeof type, "test.null", NULL, NULL, NULL};
  (void)imports, (void)text, (void)value, (void)cpu, (void)float32, (void)tensor, (void)type;
CALLS
  dso_release(&result);
  dso_session_release(session);
  dso_function_release(function);
  dso_module_release(module);
  return 0;
}
"""


def declared() -> dict[str, list[tuple[str, str]]]:
    """The public functions: the types and names of their parameters."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    found = {}
    pattern = r"^(?:DSO_API|static inline) [^;{(]*?(dso_\w+)\(((?:[^()]|\([^()]*\))*)\)"
    for name, parameters in re.findall(pattern, text, flags=re.MULTILINE):
        found[name] = [_parameter(p) for p in re.split(r",(?![^(]*\))", parameters) if p != "void"]
    return found


def _parameter(text: str) -> tuple[str, str]:
    text = " ".join(text.split())
    if match := re.fullmatch(r"void \(\*(\w+)\)\(void \*\w+\)", text):
        return "void (*)(void *)", match[1]
    kind, name = re.fullmatch(r"(.*?)(\w+)", text).groups()  # type: ignore[union-attr]
    return kind.strip(), name


def _is_pointer(kind: str) -> bool:
    return "*" in kind or kind in ("dso_visit_function", "dso_visit_weight", "dso_safe_call")


def _calls() -> dict[str, str]:
    """The C text of a call for each pointer, by function and parameter."""
    return {
        f"{function}.{name}": f"{function}("
        + ", ".join("NULL" if i == index else RIGHT[k] for i, (k, _) in enumerate(parameters))
        + ")"
        for function, parameters in declared().items()
        for index, (kind, name) in enumerate(parameters)
        if _is_pointer(kind)
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, str]:
    """The kind of the error of each call, and its text."""
    lines = [f'  (void){call};\n  say("{key}");' for key, call in _calls().items()]
    program = tmp_path_factory.mktemp("nulls") / "nulls"
    compile_program(PROGRAM.replace("CALLS", "\n".join(lines)), program)
    return dict(line.split("\t") for line in run_program(program).splitlines())


def test_each_public_function_is_read() -> None:
    """The header has no function that the pattern misses."""
    text = HEADER.read_text().partition("extern")[2]
    exported = re.findall(r"^DSO_API .*?\b(dso_\w+)\(", text, flags=re.MULTILINE)
    assert {*exported, "dso_function_call", "dso_function_release"} == {*declared()}
    assert set(_calls()) >= ALLOWED


@pytest.mark.parametrize("key", sorted(_calls()))
def test_null_is_an_error_or_allowed(key: str, answers) -> None:
    """The error names a function and what it expects."""
    is_refused = (
        re.fullmatch(r"TypeError: dso_\w+: expected .*, found NULL", answers[key]) is not None
    )
    assert is_refused != (key in ALLOWED), answers[key]


MALFORMED = r"""
#include <stdio.h>
#include "dso.h"
int main(int count, char **argv) {
  int64_t shape[] = {2};
  float data[2] = {1, 2};
  DLTensor empty = {NULL, {1, 0}, 1, {2, 32, 1}, NULL, NULL, 0}, many = empty, full = empty;
  DLTensor negative = empty;
  many.ndim = 2000000000, full.data = data, negative.ndim = -1, negative.shape = shape;
  DLTensor *tensors[] = {NULL, &empty, &many, &full, &negative};
  dso_module *module = dso_load(argv[1], NULL);
  for (int i = 0; i < 5 * (count > 1); i++) {
    dso_any args[] = {dso_tensor(tensors[i]), dso_int(1), dso_float(1)};
    for (int j = 0; j < 2; j++) {
      int status = dso_module_call(module, j ? "rows" : "scale", NULL, args, 3 - j);
      printf("%d %s\n", status, dso_last_error());
    }
  }
  dso_module_release(module);
  return 0;
}
"""


def test_a_tensor_without_a_shape_is_refused(tmp_path: Path) -> None:
    """Also NULL in place of a tensor, whatever reads its extents."""
    code = "void scale(float *x, long n, float by) {} void rows(float x[][3], long n) {}"
    path = packer.export_library(
        packer.CSourceModule(code, functions="auto"), tmp_path / "model.so"
    )
    compile_program(MALFORMED, tmp_path / "malformed")
    lines = run_program(tmp_path / "malformed", str(path)).splitlines()
    found = ["found a tensor that is NULL or has no shape; declared as"] * 8
    assert [line[:2] for line in lines] == ["-1"] * 10
    assert all(text in line for text, line in zip(found, lines, strict=False)), lines
    assert "float32[] on cpu" in lines[8]
