"""A tensor without all of its data, as old versions of TVM wrote vectors, is never handed out."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from ...support.graphs import factory, host, sum_graph
from ...support.libdso import SANITIZE, compile_program, run_program

PROGRAM = """
#include <stdio.h>
#include "dso.h"
static int show(void *context, const char *name, const DLTensor *tensor) {
  (void)context;
  return printf("%s %d\\n", name, tensor->data != NULL) < 0;
}
int main(int argc, char **argv) {
  DLTensor tensor;
  dso_module *m = dso_load(argv[1], NULL);
  (void)argc;
  if (!m || dso_module_weight(m, "a", &tensor) != 0) return 1;
  printf("%d ", dso_module_weight(m, "cut", &tensor));
  printf("%s\\n", dso_last_error());
  printf("%d ", dso_module_weight(m, "cup", &tensor));
  printf("%s\\n", dso_last_error());
  printf("%d\\n", dso_module_weights(m, show, NULL));
  printf("%s\\n", dso_last_error());
  dso_module_release(m);
  return 0;
}
"""
ARRAYS = {
    "a": runtime.Tensor(bytes(8), (2,), "float32"),
    "cut": runtime.Tensor(bytes(12), (3,), "float32x4", incomplete=True),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """Read "a", "cut" and an unknown name, then list all."""
    return compile_program(PROGRAM, tmp_path_factory.mktemp("cut") / "cut", *SANITIZE)


@pytest.mark.parametrize("kind", ["factory", "const_loader"])
def test_incomplete_weight_is_an_error_as_in_python(program, tmp_path, kind) -> None:
    """By its name and in the list; other names are found, and suggested."""
    root = host()
    constants = runtime.ConstLoaderModule(ARRAYS, {})
    root.import_module(factory(sum_graph(), ARRAYS) if kind == "factory" else constants)
    path = packer.export_library(root, tmp_path / "cut.so")
    with pytest.raises(ValueError, match="^incomplete: shape") as raised:
        runtime.load(path).weights["cut"].__dlpack__()
    text = "ValueError: " + str(raised.value).removesuffix("; read .raw instead")
    lines = run_program(program, path).splitlines()
    assert lines[0] == f"-1 {text}"
    assert lines[1].startswith("-1 KeyError: no weight 'cup' in the tree")
    assert "cut" in lines[1]
    assert lines[2:] == ["a 1", "-1", text]
