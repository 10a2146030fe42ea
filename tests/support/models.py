"""A model made by hand: bytecode, C operators, and weights with the record of its graph.

``main(x)`` has a symbolic batch: hidden = relu(x @ dense.weight + dense.bias), then scores =
hidden * scale and a copy of hidden. `dense.weight` is stored packed.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

import packer
import runtime
from packer.operators import pack_matmul
from packer.relax import MACHINE, DataType, Program

INNER, COLUMNS = 40, 48
FLOAT32, UINT8 = DataType(2, 32), DataType(1, 8)

OPERATORS = """
#include "dso_packer.h"

int32_t dense_relu(int64_t batch, const float *x, const float *w, const float *bias, float *y) {
  for (int64_t i = 0; i < batch; i++)
    for (int64_t j = 0; j < 48; j++) {
      float sum = bias[j];
      for (int64_t k = 0; k < 40; k++)
        sum += x[40 * i + k] * w[40 * 32 * (j / 32) + 32 * k + j % 32];
      y[48 * i + j] = sum > 0 ? sum : 0;
    }
  return 0;
}

int32_t scaled(int64_t batch, const float *x, const float *scale, float *y) {
  for (int64_t i = 0; i < 48 * batch; i++) y[i] = x[i] * scale[i % 48];
  return 0;
}
"""
FUNCTIONS = {
    "dense_relu": "dso_status(int64_t batch, const float *x, const float *w, const float *bias, "
    "float *y)",
    "scaled": "dso_status(int64_t batch, const float *x, const float *scale, float *y)",
}
RECORD: dict[str, Any] = {
    "version": 1,
    "inputs": [{"name": "x.1", "dtype": "float32", "shape": ["batch", INNER]}],
    "outputs": [
        {"name": "scores", "dtype": "float32", "shape": ["batch", COLUMNS]},
        {"name": "hidden", "dtype": "float32", "shape": ["batch", COLUMNS]},
    ],
    "nodes": [
        {
            "name": "/dense/MatMul",
            "op": "dso.MatMul",
            "function": "dense_relu",
            "inputs": ["x.1", "dense.weight", "dense.bias"],
            "outputs": ["hidden"],
            "flops": 2 * INNER * COLUMNS,
        },
        {
            "name": "/Mul",
            "op": "Mul",
            "function": "scaled",
            "inputs": ["hidden", "scale"],
            "outputs": ["scores"],
            "flops": COLUMNS,
        },
    ],
    "values": {
        "x.1": {"dtype": "float32", "shape": ["batch", INNER]},
        "hidden": {"dtype": "float32", "shape": ["batch", COLUMNS]},
        "scores": {"dtype": "float32", "shape": ["batch", COLUMNS]},
        "dense.weight": {"dtype": "float32", "shape": [INNER, COLUMNS]},
        "dense.bias": {"dtype": "float32", "shape": [COLUMNS]},
        "scale": {"dtype": "float32", "shape": [COLUMNS]},
    },
    "weights": {
        "dense.weight": {"form": "packed", "kernel": "matmul", "shape": [INNER, COLUMNS]},
        "tied.scale": {"form": "equal", "name": "scale"},
    },
    "folded": {"norm.mean": "a part of dense.weight and dense.bias (batch normalization)"},
}
_RANDOM = np.random.default_rng(1)
WEIGHT = _RANDOM.normal(size=(INNER, COLUMNS)).astype("f4")
BIAS, SCALE = _RANDOM.normal(size=(2, COLUMNS)).astype("f4")


def record(**changes: Any) -> dict[str, Any]:
    """A copy of the record, changed."""
    return {**copy.deepcopy(RECORD), **changes}


def safetensors(arrays: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """A file of arrays, whose data area is aligned."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, array in arrays.items():
        header[name] = {
            "dtype": f"{array.dtype.kind.upper()}{8 * array.itemsize}",
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return len(text).to_bytes(8, "little") + text + data


def weights(changed: dict[str, Any] | None = None) -> runtime.SafetensorsModule:
    """The weights, with the record or a changed one."""
    arrays = {"dense.weight": pack_matmul(WEIGHT), "dense.bias": BIAS, "scale": SCALE}
    text = json.dumps(RECORD if changed is None else changed)
    return runtime.SafetensorsModule(safetensors(arrays, {"dso.graph": text}))


def program() -> Program:
    """The bytecode."""
    made = Program()
    main = made.function("main", ["x.1"])
    (x,) = main.params
    heap = main.call("vm.builtin.alloc_shape_heap", MACHINE, 1)
    where = "main: input 'x.1' of float32[batch, 40] "
    main.run("vm.builtin.check_tensor_info", x, 2, FLOAT32, where)
    main.run("vm.builtin.match_shape", x, heap, 2, 1, 0, 0, INNER, where)
    batch = main.call("vm.builtin.make_prim_value", heap, 1, 0)
    outputs = []
    for _ in range(2):
        shape = main.call("vm.builtin.make_shape", heap, 2, 1, 0, 0, COLUMNS)
        nbytes = main.call("vm.builtin.make_shape", heap, 2, 1, 0, 0, 4 * COLUMNS)
        storage = main.call("vm.builtin.alloc_storage", MACHINE, nbytes, 0, UINT8, "global")
        outputs.append(main.call("vm.builtin.alloc_tensor", storage, 0, shape, FLOAT32))
    hidden, scores = outputs
    w, bias, scale = (main.call("dso.weight", n) for n in ("dense.weight", "dense.bias", "scale"))
    main.run("dense_relu", batch, x, w, bias, hidden)
    main.run("scaled", batch, hidden, scale, scores)
    main.ret(main.call("vm.builtin.make_tuple", scores, hidden))
    return made


def model(changed: dict[str, Any] | None = None) -> runtime.Module:
    """The tree: `packer.export_library` makes a library of it."""
    executable = program().executable()
    executable.import_module(packer.CSourceModule(OPERATORS, functions=FUNCTIONS))
    executable.import_module(weights(changed))
    return executable


def expected(x: Any) -> tuple[Any, Any]:
    """The outputs, by NumPy."""
    hidden = np.maximum(x @ WEIGHT + BIAS, 0)
    return hidden * SCALE, hidden
