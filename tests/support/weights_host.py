"""A library whose host code reads its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

import packer
import runtime

SOURCE = r"""
#include "dso_packer.h"

/* The sum of a vector of weights of the library's tree. */
dso_status weight_sum(const char *name, double *sum) {
  DLTensor weight;
  if (dso_weight(name, &weight)) return -1;
  *sum = 0;
  for (int64_t i = 0; i < weight.shape[0]; i++) *sum += ((const float *)weight.data)[i];
  return 0;
}

dso_status weight_address(const char *name, int64_t *address) {
  DLTensor weight;
  if (dso_weight(name, &weight)) return -1;
  *address = (int64_t)(intptr_t)weight.data;
  return 0;
}
"""
FUNCTIONS = {
    "weight_sum": packer.FunctionDeclaration(
        "dso_status(const char *name, double *sum)", out=["sum"]
    ),
    "weight_address": packer.FunctionDeclaration(
        "dso_status(const char *name, int64_t *address)", out=["address"]
    ),
}
ARRAYS = {"layer.weight": np.arange(5, dtype="f4"), "layer.bias": np.full(3, 0.5, "f4")}


def export_reader(path: Path, **options: Any) -> Path:
    """Export the library with two files of weights."""
    root = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    root.import_module(runtime.SafetensorsModule(safetensors.numpy.save(ARRAYS)))
    other = {"layer.bias": np.ones(1, "f4"), "more": np.ones(2, "f4")}
    root.import_module(runtime.SafetensorsModule(safetensors.numpy.save(other)))
    packer.export_library(root, path, **options)
    return path
