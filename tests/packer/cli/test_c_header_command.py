"""`packer c-header`: the header compiles without warnings, and its functions call the library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import packer as packer_package
import runtime
from packer.packaging.c_header import header_text
from packer.packaging.c_header.names import Names, comment, identifier, literal

from ...support import needs
from ...support.command_line import done, refused

HOME = Path(runtime.__file__).parent
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{HOME}/include"]
LIBRARIES = [str(HOME / "lib/libdso.a"), "-pthread", "-ldl", "-lm"]
CODE = """
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "dso_abi.h"
typedef struct kit { int n; } kit;
kit *kit_new(int n) { kit *k = malloc(sizeof *k); k->n = n; return k; }
void kit_free(kit *k) { free(k); }
int kit_count(const kit *k) { return k->n; }
uint64_t big(uint64_t self) { return self; }
float halve(double class_) { return (float)class_ / 2; }
bool negate(bool b) { return !b; }
void scale(float *x, int64_t n, float by) { for (int64_t i = 0; i < n; i++) x[i] *= by; }
const char *greet(const char *name) { return name; }
dso_status mean(const float *x, int64_t n, double *result) {
  if (n == 0) return dso_raise("ValueError", "no elements");
  *result = 0;
  for (int64_t i = 0; i < n; i++) *result += x[i];
  *result /= (double)n;
  return 0;
}
int64_t many(int64_t a, int64_t *b, int64_t *c) { *b = a + 1; *c = a + 2; return a; }
int apply(int (*each)(int), int x) { return each(x); }
"""
FUNCTIONS = {
    "kit_new": {"declaration": "kit *(int n)", "free": "kit_free"},
    "kit_free": "void(kit *k)",
    "kit_count": "int(const kit *k)",
    "big": {"declaration": "uint64_t(uint64_t self)", "doc": "Return it. /* Not */ more.\\nTwo."},
    "halve": "float(double class_)",
    "negate": "bool(bool b)",
    "scale": "void(float *x, int64_t n, float by)",
    "greet": "const char *(const char *name)",
    "mean": {
        "declaration": "dso_status(const float *x, int64_t n, double *result)",
        "out": ["result"],
    },
    "many": {"declaration": "int64_t(int64_t a, int64_t *b, int64_t *c)", "out": ["b", "c"]},
    "apply": "int(int (*each)(int), int x)",
}
PROGRAM = r"""
#include <stdio.h>
#include "model.h"

static int next(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle, (void)num_args;
  *result = dso_int(args[0].v_int64 + 1);
  return 0;
}

#define EXPECT(condition) \
  do { \
    if (!(condition)) return printf("%d: %s: %s\n", __LINE__, #condition, dso_last_error()), 1; \
  } while (0)

int main(int argc, char **argv) {
  model m;
  EXPECT(argc == 2 && !model_open(&m, argv[1], NULL));

  uint64_t large;
  float half;
  bool negated;
  EXPECT(!model_big(&m, UINT64_MAX, &large) && large == UINT64_MAX);
  EXPECT(!model_halve(&m, 5, &half) && half == 2.5f);
  EXPECT(!model_negate(&m, true, &negated) && !negated);

  model_kit *kit;
  int32_t count;
  EXPECT(!model_kit_new(&m, 3, &kit) && !model_kit_count(&m, kit, &count) && count == 3);
  EXPECT(!model_kit_free(&m, kit));

  float data[] = {1, 2, 3};
  int64_t shape[] = {3};
  DLTensor x = {data, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
  double mean;
  EXPECT(!model_scale(&m, &x, 3, 2) && data[2] == 6);
  EXPECT(!model_mean(&m, &x, 3, &mean) && mean == 4);
  EXPECT(model_mean(&m, NULL, 0, &mean) == -1);
  EXPECT(!strcmp(dso_last_error(), "ValueError: no elements"));

  dso_any text, all;
  EXPECT(!model_greet(&m, "a text that is long", &text));
  dso_release(&text);
  EXPECT(!model_many(&m, 1, &all) && all.type_index == DSO_ARRAY);
  dso_release(&all);
  dso_function *function = dso_function_new(next, NULL, NULL);
  EXPECT(!model_apply(&m, function, 41, &count) && count == 42);
  dso_function_release(function);
#ifdef MODEL_WEIGHT_LAYER_WEIGHT
  DLTensor weight;
  EXPECT(!dso_module_weight(m.module, MODEL_WEIGHT_LAYER_WEIGHT, &weight));
  EXPECT(weight.ndim == 2 && weight.shape[1] == 3);
#endif
  model_close(&m);
  return puts("done") < 0;
}
"""


def export(folder: Path, weights: bool) -> Path:
    """Export the functions."""
    module = packer_package.CSourceModule(CODE, functions=FUNCTIONS)
    if weights:
        weight = np.zeros((2, 3), dtype="float32")
        module.import_module(runtime.SafetensorsModule(save({"layer.weight": weight})))
    return Path(packer_package.export_library(module, folder / "model.so"))


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weights"])
def folder(request, tmp_path_factory) -> Path:
    """A folder with model.so, model.h and main.c."""
    folder = tmp_path_factory.mktemp("model")
    library = export(folder, request.param)
    (folder / "model.h").write_text(header_text(library, "model"))
    (folder / "main.c").write_text(PROGRAM)
    return folder


def compiled(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Compile main.c."""
    needs.program(command[0])
    return subprocess.run(
        [*command, *FLAGS, "main.c", "-o", "main", "-x", "none", *LIBRARIES],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        ("gcc", "-std=c99"),
        ("clang", "-std=c11"),
        ("g++", "-x", "c++", "-std=c++11"),
        ("clang++", "-x", "c++", "-std=c++20"),
    ],
    ids="-".join,
)
def test_program_calls_the_library(command, folder) -> None:
    """The program compiles as C and as C++, and gets the results."""
    built = compiled(folder, *command)
    assert (built.returncode, built.stderr) == (0, "")
    ran = subprocess.run(["./main", "./model.so"], cwd=folder, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("done\n", 0), ran.stderr


@pytest.mark.parametrize(
    "call",
    [
        "model_halve(&m, &half, &half)",
        "model_halve(&m, 5, &large)",
        "model_kit_count(&m, &x, &count)",
        "model_scale(&m, data, 3, 2)",
        "model_greet(&m, 5, &text)",
        "model_big(&m, 1)",
        "model_apply(&m, next, 41, &count)",
    ],
)
def test_wrong_argument_does_not_compile(call, folder, tmp_path) -> None:
    """The compiler compares the types."""
    shutil.copy(folder / "model.h", tmp_path)
    wrong = PROGRAM.replace("  model_close(&m);", f"  {call};\n  model_close(&m);")
    (tmp_path / "main.c").write_text(wrong)
    built = compiled(tmp_path, "gcc", "-std=c99")
    assert built.returncode != 0
    assert call.split("(")[0] in built.stderr


def test_library_with_other_types_is_refused(folder, tmp_path) -> None:
    """A header of an older library does not call a newer one with wrong types."""
    code = CODE.replace("float halve(double class_)", "double halve(double class_)")
    functions = FUNCTIONS | {"halve": "double(double class_)"}
    other = packer_package.CSourceModule(code, functions=functions)
    packer_package.export_library(other, tmp_path / "other.so")
    assert compiled(folder, "gcc", "-std=c99").returncode == 0
    ran = subprocess.run(
        ["./main", str(tmp_path / "other.so")], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert (
        "TypeError: halve: another type than its header declares; write the header " in ran.stdout
    )


def test_command_writes_a_file_or_to_stdout(packer, tmp_path) -> None:
    """The name of the header is the prefix."""
    done(packer("export", "add.so", "add.c"))
    assert done(packer("c-header", "add.so", "-o", "my-model.h")) == ""
    text = (tmp_path / "my-model.h").read_text()
    assert "int my_model_add(const my_model *self, int64_t a, int64_t b, int64_t *result)" in text
    assert "static inline int add_add(" in done(packer("c-header", "add.so"))
    assert "is also an input" in refused(packer("c-header", "add.so", "-o", "add.so"))
    assert "add.c" in refused(packer("c-header", "add.c"))


def test_version_and_license_are_constants(tmp_path) -> None:
    """A program can say which model it was compiled for; other metadata is left to the library."""
    host = packer_package.CSourceModule("int one(void) { return 1; }", functions="auto")
    metadata = {"version": '1.2 "beta"', "license": "MIT", "trained": 3}
    path = packer_package.export_library(
        host, tmp_path / "geo.so", output=packer_package.Output(metadata=metadata)
    )
    text = header_text(path, "geo")
    assert '#define GEO_VERSION "1.2 \\042beta\\042"\n#define GEO_LICENSE "MIT"\n' in text
    assert "trained" not in text.lower()


def test_functions_without_types_are_listed(tmp_path) -> None:
    """In a comment; the rest of the header compiles."""
    source = tmp_path / "plain.c"
    source.write_text(
        '#include "dso_abi.h"\nDSO_EXPORT int __tvm_ffi_run(void *self, const dso_any *args, '
        "int32_t n, dso_any *result) { (void)self, (void)args, (void)n, (void)result; return 0; }"
    )
    library = tmp_path / "plain.so"
    command = ["cc", "-shared", "-fPIC", f"-I{HOME}/include", source, "-o", library]
    subprocess.run(command, check=True)
    text = header_text(library, "plain")
    assert (
        "/* Functions without C types, for dso_module_call(model.module, ...):\n *\n *     run\n"
        in text
    )
    (tmp_path / "main.c").write_text(f"{text}\nint main(void) {{ return 0; }}\n")
    assert compiled(tmp_path, "gcc", "-std=c99").returncode == 0


def test_names_of_any_kind() -> None:
    """Identifiers, comments and literals of hostile text."""
    names = Names("a")
    assert [names.add(text) for text in ("a", "a", "x.y", "x/y", "1", "", "int")] == [
        *("a_2", "a_3", "x_y", "x_y_2", "_1", "_", "int_")
    ]
    assert identifier("mod\u00e4l") == "mod_l"
    assert comment("a */ b /* c \n\\") == "a * / b / * c"
    assert literal('a"\\?\u00e4\n1') == '"a\\042\\134\\077\\303\\244\\0121"'
