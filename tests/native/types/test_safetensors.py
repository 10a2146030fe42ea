"""Weights of a packed library, read by a C program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from ...support.libdso import compile_program, run_program
from ...support.weights_files import ONE, PackBlob, blob_of, file_of
from ...support.weights_host import ARRAYS, export_reader

PROGRAM = r"""
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

static int print(void *count, const char *name, const DLTensor *tensor) {
  uint32_t sum = 0;
  int64_t nbytes = tensor->dtype.bits / 8;
  for (int32_t i = 0; i < tensor->ndim; i++) nbytes *= tensor->shape[i];
  for (int64_t i = 0; i < nbytes; i++) sum += ((const unsigned char *)tensor->data)[i];
  printf("%s %d %" PRId64 " %u\n", name, (int)tensor->ndim, nbytes, (unsigned)sum);
  ++*(int *)count;
  return 0;
}

static void *find(void *module) {
  DLTensor tensor;
  return dso_module_weight((dso_module *)module, "layer.weight", &tensor) ? NULL : tensor.data;
}

static void *in_threads(dso_module *module) {
  pthread_t threads[4];
  void *found[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, find, module);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], &found[i]);
  for (int i = 1; i < 4; i++)
    if (found[i] != found[0]) abort();
  return found[0];
}

static long resident_kb(void) {
  char line[256];
  long kb = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) if (sscanf(line, "VmRSS: %ld", &kb) == 1) break;
  fclose(status);
  return kb;
}

int main(int argc, char **argv) {
  (void)argc;
  int count = 0;
  DLTensor tensor;
  long before = resident_kb();
  dso_module *module = dso_load(argv[1], NULL);
  if (!module) return puts(dso_last_error()), 0;
  long grown = resident_kb() - before;
  if (!strcmp(argv[2], "grown")) return printf("%ld\n", grown), 0;
  void *data = in_threads(module);
  if (dso_module_weights(module, print, &count)) return puts(dso_last_error()), 0;
  if (dso_module_weight(module, argv[2], &tensor)) puts(dso_last_error());
  dso_any sum, name = dso_string("layer.weight");
  if (!dso_module_call(module, "weight_address", &sum, &name, 1)) {
    printf("%d\n", (void *)(uintptr_t)sum.v_int64 == data);
    dso_module_call(module, "weight_sum", &sum, &name, 1);
    printf("%.1f\n", sum.v_float64);
    name = dso_string(argv[2]);
    if (dso_module_call(module, "weight_sum", &sum, &name, 1)) puts(dso_last_error());
  }
  dso_module_release(module);
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The program, compiled."""
    return compile_program(PROGRAM, tmp_path_factory.mktemp("weights") / "program")


def test_c_program_reads_the_weights_and_its_host_code_does(program, tmp_path) -> None:
    """All of the tree by name, the first of equal names; in threads; the errors name near ones."""
    path = export_reader(tmp_path / "model.so")
    lines = run_program(program, path, "layer.weigth").splitlines()
    expected = {name: ARRAYS[name] for name in ("layer.bias", "layer.weight")}
    expected["more"] = np.ones(2, "f4")
    assert lines[: len(expected)] == [
        f"{name} 1 {array.nbytes} {sum(array.tobytes())}" for name, array in expected.items()
    ]
    near, same, total, missing = lines[len(expected) :]
    names = "near names: 'layer.weight', 'layer.bias'"
    assert near == f"KeyError: no weight 'layer.weigth' in the tree; {names}"
    assert (same, total) == ("1", "10.0")
    what = "its host code reads weight 'layer.weigth', which no module of its tree has"
    assert missing == f"KeyError: <LibraryModule {str(path)!r}>: {what}; {names}"


def test_malformed_header_is_refused_at_its_first_use(program, pack_blob: PackBlob) -> None:
    """A load succeeds; the use has the error of Python's runtime."""
    blob = blob_of(runtime.SafetensorsModule(file_of(ONE, b"1234")))
    path = pack_blob(blob.replace(b'"U8"', b'"U9"'))
    with pytest.raises(runtime.BlobFormatError) as caught:
        len(runtime.load(path).weights)
    assert run_program(program, path, "a") == f"BlobFormatError: {caught.value}\n"


def test_load_does_not_touch_the_weights(program, tmp_path) -> None:
    """The bytes stay on the disk until code reads them."""
    nbytes = 256 << 20
    layout = {"w": {"dtype": "U8", "shape": [nbytes], "data_offsets": [0, nbytes]}}
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(file_of(json.dumps(layout)))
    os.truncate(weights, weights.stat().st_size + nbytes)
    root = packer.CSourceModule("int one(void) { return 1; }", functions={"one": "int()"})
    root.import_module(runtime.SafetensorsModule(weights))
    path = packer.export_library(root, tmp_path / "large.so")
    assert path.stat().st_size > nbytes
    assert int(run_program(program, path, "grown")) < 4096
