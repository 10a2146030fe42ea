"""Weights of int4 in the library beside the same weights as float32, on one thread.

python benchmarks/onnx_four_bits.py: in an environment with the importer of models. Calls take
turns, and processor time is measured. Prints the milliseconds of both and their ratio.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ |= {"TVM_NUM_THREADS": "1"}

import ml_dtypes
import numpy as np
import onnx

import packer
import runtime

CALLS = 30
# The operator, its weight, the other input.
CASES = {
    "Conv of 28 x 28": ("Conv", (256, 256, 3, 3), (1, 256, 30, 30)),
    "Conv of 56 x 56": ("Conv", (256, 256, 3, 3), (1, 256, 58, 58)),
    "Mul": ("Mul", (1024, 1024), (1024, 1024)),
}


def model_of(operator: str, weight: tuple[int, ...], other: tuple[int, ...], kind: str) -> bytes:
    """Make a model whose weight has a scale for each first index, of int4 or of float32."""
    random, helper = np.random.default_rng(1), onnx.helper
    integers, scales = random.integers(-8, 8, weight), random.random(weight[0]).astype(np.float32)
    node = helper.make_node(operator, ["x", "f"], ["y"])
    x, y = (helper.make_tensor_value_info(*one) for one in (("x", 1, other), ("y", 1, None)))
    if kind == "int4":
        arrays = {"w": integers.astype(ml_dtypes.int4), "s": scales}
        nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0), node]
    else:
        factors = scales.reshape(-1, *[1] * (len(weight) - 1))
        arrays, nodes = {"f": (integers * factors).astype(np.float32)}, [node]
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], stored)
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


def compare(name: str, folder: Path) -> None:
    """Print the row of a case."""
    operator, weight, other = CASES[name]
    x = np.random.default_rng(2).standard_normal(other).astype(np.float32)
    calls, times = [], ([], [])  # type: ignore[var-annotated]
    for kind in ("int4", "float32"):
        (folder / "m.onnx").write_bytes(model_of(operator, weight, other, kind))
        path = folder / f"{kind}{len(weight)}{other[-1]}.so"
        module = packer.from_onnx(folder / "m.onnx")
        packer.export_library(module, path, build=packer.Build(cpu="native"))
        calls.append(runtime.load(path)["main"])
    for _ in range(CALLS):
        for call, of_call in zip(calls, times, strict=True):
            start = time.process_time()
            call(x)
            of_call.append(time.process_time() - start)
    ours, peer = map(min, times)
    print(f"{name:18} {1e3 * ours:8.2f} {1e3 * peer:8.2f} {ours / peer:7.2f}")


if __name__ == "__main__":
    print(f"{'':18} {'int4':>8} {'float32':>8} {'ratio':>7}")
    with TemporaryDirectory() as made:
        for each in CASES:
            compare(each, Path(made))
