"""Run a model that packer exported, in real TVM: ``run_packed_model.py LIBRARY``."""

from __future__ import annotations

import sys

import numpy as np
import tvm
from tvm import relax

machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
print(machine["main"](tvm.runtime.tensor(np.arange(4, dtype="float32"))).numpy().tolist())
