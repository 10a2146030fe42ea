"""Run `finding_model` in real TVM: ``run_finding_program.py LIBRARY``; prints JSON."""

from __future__ import annotations

import json
import sys

import numpy as np
import tvm
from tvm import relax

machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
x = tvm.runtime.tensor(np.array([3, 1, 2, 3, 0, 1], "float32"))
print(json.dumps([array.numpy().tolist() for array in machine["main"](x)]))
