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
ahead = runtime.load(folder / "ahead.so")["default"]()
x = np.arange(384, dtype="float32").reshape(2, 3, 8, 8) / 384
ahead.run(x=x, **{"index.1": np.arange(5)})
assert [ahead.get_input_index(name) for name in ("x", "index_1", "index.1", "y")] == [0, 1, 1, -1]
outputs = [ahead.get_output(i).numpy().tolist() for i in range(3)]
assert "libtvm" not in Path("/proc/self/maps").read_text()
print(json.dumps([y.tolist(), result.tolist(), outputs]))
