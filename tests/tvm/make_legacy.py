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
from tvm.relay.backend import Executor, Runtime  # noqa: E402


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


def ahead() -> Any:
    """A model that is compiled ahead of time: two inputs, workspaces, three outputs, constants."""
    x, index = relay.var("x", shape=(2, 3, 8, 8)), relay.var("index.1", shape=(5,), dtype="int64")
    weight = relay.var("w", shape=(4, 3, 3, 3))
    conv = relay.nn.conv2d(x, weight, padding=(1, 1), channels=4, kernel_size=(3, 3))
    pooled = relay.nn.max_pool2d(relay.nn.relu(conv), (2, 2), (2, 2))
    scaled = relay.cast(index * relay.const(3, "int64"), "int32")
    outputs = relay.Tuple([relay.sum(pooled, axis=(2, 3)), scaled, pooled])
    module = tvm.IRModule.from_expr(relay.Function([x, weight, index], outputs))
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32")
    kinds = {"executor": Executor("aot"), "runtime": Runtime("cpp")}
    return relay.build(module, "llvm", params={"w": weights}, **kinds)


def run_ahead(path: Path) -> list[Any]:
    """Run it as a file; the name of an input is that of the model."""
    executor = tvm.runtime.load_module(str(path))["default"](tvm.cpu())
    x = np.arange(384, dtype="float32").reshape(2, 3, 8, 8) / 384
    executor["set_input"]("x", tvm.nd.array(x))
    executor["set_input"]("index.1", tvm.nd.array(np.arange(5)))
    executor["run"]()
    return [executor["get_output"](i).numpy().tolist() for i in range(3)]


def main(folder: Path) -> None:
    """Make them, and run them as files."""
    compiled = ahead()
    compiled.export_library(str(folder / "ahead.so"))
    for number, host in enumerate(compiled.module.imported_modules[0].imported_modules):
        host.save(str(folder / f"ahead{number}.o"))
    saxpy().export_library(str(folder / "saxpy.so"))
    model().export_library(str(folder / "model.so"))
    x, y = np.arange(1000, dtype="float32"), tvm.nd.array(np.zeros(1000, "float32"))
    loaded = tvm.runtime.load_module(str(folder / "saxpy.so"))
    loaded["saxpy"](2.5, tvm.nd.array(x), tvm.nd.array(x[::-1].copy()), y)
    executor = GraphModule(tvm.runtime.load_module(str(folder / "model.so"))["default"](tvm.cpu()))
    executor.run(x=np.arange(8, dtype="float32")[None] / 8)
    results = [y.numpy().tolist(), executor.get_output(0).numpy().tolist()]
    print(json.dumps([*results, run_ahead(folder / "ahead.so")]))


main(Path(sys.argv[1]))
