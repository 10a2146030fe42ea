"""Run a model of packer on two devices, in real TVM: ``run_packed_devices.py LIBRARY``."""

from __future__ import annotations

import sys

import numpy as np
import tvm
from tvm import relax

devices = [tvm.cpu(0), tvm.cpu(1)]
machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), devices)
result = machine["main"](tvm.runtime.tensor(np.arange(4, dtype="float32")))
print(result.device.index, result.numpy().tolist())
