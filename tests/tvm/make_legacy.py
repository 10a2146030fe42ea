"""Compile libraries with TVM 0.17, and run them there: ``make_legacy.py FOLDER``; prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from legacy_tvm import import_tvm

tvm = import_tvm(compiles=True)
from tvm import relay, te  # noqa: E402
from tvm.contrib.graph_executor import GraphModule  # noqa: E402


def saxpy() -> Any:
    """A function of dynamic shape with a parallel loop, and a call of a global function."""
    n, a = te.var("n"), te.var("a", dtype="float32")
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    result = te.compute((n,), lambda i: x[i] * a + y[i], name="result")
    schedule = te.create_schedule(result.op)
    schedule[result].parallel(result.op.axis[0])
    return tvm.build(schedule, [a, x, y, result], "llvm", name="saxpy")


def model() -> Any:
    """A graph with parameters."""
    x = relay.var("x", shape=(1, 8))
    weight = relay.var("w", shape=(4, 8))
    body = relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, weight)))
    module = tvm.IRModule.from_expr(relay.Function([x, weight], body))
    weights = np.arange(32, dtype="float32").reshape(4, 8) / 32
    return relay.build(module, "llvm", params={"w": weights})


def main(folder: Path) -> None:
    """Make them, and run them as files."""
    saxpy().export_library(str(folder / "saxpy.so"))
    model().export_library(str(folder / "model.so"))
    x, y = np.arange(1000, dtype="float32"), tvm.nd.array(np.zeros(1000, "float32"))
    loaded = tvm.runtime.load_module(str(folder / "saxpy.so"))
    loaded["saxpy"](2.5, tvm.nd.array(x), tvm.nd.array(x[::-1].copy()), y)
    executor = GraphModule(tvm.runtime.load_module(str(folder / "model.so"))["default"](tvm.cpu()))
    executor.run(x=np.arange(8, dtype="float32")[None] / 8)
    print(json.dumps([y.numpy().tolist(), executor.get_output(0).numpy().tolist()]))


main(Path(sys.argv[1]))
