"""The memory and the start of workers with PyTorch and ONNX Runtime, beside references.py.

reference_peers.py [--workers N] [--mib N]: each worker opens a file with float32 weights and reads
all of them. It needs torch, onnx and onnxruntime; a row whose packages are missing is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # the last: it has the sources of runtime

import numpy as np

from tests.support.reference_workers import answer, end, pss_of, start

_MIB = 1 << 20
COLUMNS = 1024

TORCH = """
import json, sys, time
began = time.perf_counter()
import torch
weights = torch.load(sys.argv[1], mmap={mmap}, weights_only=True)["w"]
ready = time.perf_counter() - began
print(json.dumps([float(weights[:, 0].sum()), ready]), flush=True)
sys.stdin.readline()
"""
ONNX = """
import json, sys, time
began = time.perf_counter()
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
ready = time.perf_counter() - began
rows = session.get_inputs()[0].shape[1]
result = session.run(None, {"x": np.ones((1, rows), np.float32)})[0]
print(json.dumps([float(result.sum()), ready]), flush=True)
sys.stdin.readline()
"""


def torch_file(folder: Path, rows: int) -> Path:
    """Write the weights with torch.save."""
    import torch

    torch.save({"w": torch.rand(rows, COLUMNS)}, folder / "weights.pt")
    return folder / "weights.pt"


def onnx_file(folder: Path, rows: int) -> Path:
    """Write a model of one matrix product, with the weights in a file beside it."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(23).random((rows, COLUMNS), np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, rows])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, COLUMNS])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "weights.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.data")
    return path


def measure(what: str, path: Path, code: str, count: int) -> None:
    """Print the sum of the Pss of workers that have read all weights, and the least start."""
    workers = [start(path, code) for _ in range(count)]
    for worker in workers:
        answer(worker)
    total = sum(pss_of(worker.pid) for worker in workers)
    for worker in workers:
        end(worker)
    times = []
    for _ in range(5):
        worker = start(path, code)
        times.append(answer(worker)[1])
        end(worker)
    print(f"{what}: Pss of {count} {total / _MIB:.0f} MiB, ready after {1e3 * min(times):.0f} ms")


def main() -> None:
    """Measure what is installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--mib", type=int, default=1024)
    given = parser.parse_args()
    rows = given.mib * _MIB // (4 * COLUMNS)
    with tempfile.TemporaryDirectory() as name:
        if importlib.util.find_spec("torch"):
            path = torch_file(Path(name), rows)
            measure("torch.load(mmap=True)", path, TORCH.format(mmap=True), given.workers)
            measure("torch.load", path, TORCH.format(mmap=False), given.workers)
        if importlib.util.find_spec("onnxruntime"):
            measure("ONNX Runtime", onnx_file(Path(name), rows), ONNX, given.workers)


if __name__ == "__main__":
    main()
