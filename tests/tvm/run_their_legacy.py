"""Run what make_legacy.py compiled, without TVM: ``run_their_legacy.py FOLDER``; prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import runtime

folder = Path(sys.argv[1])
x, y = np.arange(1000, dtype="float32"), np.zeros(1000, "float32")
runtime.load(folder / "saxpy.so")["saxpy"](2.5, x, x[::-1].copy(), y)
executor = runtime.load(folder / "model.so")["default"]()
executor.run(x=np.arange(8, dtype="float32")[None] / 8)
result = executor.get_output(0).numpy()
assert "libtvm" not in Path("/proc/self/maps").read_text()
print(json.dumps([y.tolist(), result.tolist()]))
