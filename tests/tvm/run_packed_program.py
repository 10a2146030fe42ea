"""Run a program that packer wrote, in real TVM: ``run_packed_program.py LIBRARY``; prints JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import tvm
from tvm import relax


def listed(result: Any) -> list[Any]:
    """The arrays of a result, as lists."""
    results = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
    return [array.numpy().tolist() for array in results]


machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
arrays = [np.arange(4, dtype="float32").reshape(2, 2), np.arange(6, dtype="float32").reshape(2, 3)]
print(json.dumps([listed(machine["main"](tvm.runtime.tensor(array))) for array in arrays]))
