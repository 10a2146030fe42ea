"""One ONNX operator in a model, beside ONNX Runtime and the machine's limit.

python benchmarks/onnx_operators.py [NAME ...]: in the environment of the importer of models. A
process with one thread and one with two take turns, and in each the library, the peer and the
limit: a loop of independent sums of products, or NumPy's copy of as many bytes. Prints for each
operator, from the least of all calls: the milliseconds of processor time of one thread; GFLOP/s or
GB/s, and their share of the limit; the time to that of ONNX Runtime, with one thread and with two;
the time of two threads to that of one; and whether the operator ran in plain loops.
"""

from __future__ import annotations

import io
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from onnx import helper, numpy_helper

import packer
import runtime

CALLS, SECONDS = (40, 500), 2.0  # at least and at most; the seconds end them between
THREADS = (1, 2)
ROUNDS, SUMS = 20000, 12  # of the loop that is the limit
LOOP = """
typedef {type} vec __attribute__((vector_size(__BIGGEST_ALIGNMENT__)));
long lanes(void) {{ return sizeof(vec) / sizeof({type}); }}
double multiply(long rounds) {{
  vec sums[{sums}] = {{{{0}}}}, x = sums[0] + ({type})0.5;
  for (long i = 0; i < rounds; i++) {{
#pragma GCC unroll {sums}
    for (int j = 0; j < {sums}; j++) sums[j] = sums[j] * x + x;
  }}
  double all = 0;
  for (int j = 0; j < {sums}; j++) all += sums[j][0];
  return all;
}}
"""


class Case(NamedTuple):
    """A node: its operator, the shapes of inputs and of random weights, its attributes."""

    operator: str
    inputs: list[tuple[int, ...]]
    weights: Sequence[Any] = ()
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: tuple[int, ...] = ()  # their types, if not that of the inputs
    dtype: Any = np.float32
    is_quantised: bool = False  # 8 bits around it, as tools write a quantised model


CASES = {
    "Conv 1-D": Case("Conv", [(1, 64, 1000)], [(64, 64, 3)], {"pads": [1, 1]}),
    "Conv 1-D, dilated": Case("Conv", [(1, 64, 1000)], [(64, 64, 3)], {"dilations": [8]}),
    "Conv 1-D, depthwise": Case("Conv", [(1, 128, 1000)], [(128, 1, 5)], {"group": 128}),
    "Conv 2-D": Case("Conv", [(1, 64, 56, 56)], [(64, 64, 3, 3)], {"pads": [1] * 4}),
    "Conv 2-D, dilated": Case("Conv", [(1, 64, 28, 28)], [(64, 64, 3, 3)], {"dilations": [4, 4]}),
    "Conv 2-D, computed weight": Case("Conv", [(1, 64, 56, 56), (64, 64, 3, 3)]),
    "Conv 3-D": Case("Conv", [(1, 32, 8, 28, 28)], [(32, 32, 3, 3, 3)], {"pads": [1] * 6}),
    "Conv 3-D, of time": Case("Conv", [(1, 64, 8, 28, 28)], [(64, 64, 3, 1, 1)]),
    "Conv 3-D, first": Case(
        "Conv",
        [(1, 3, 8, 112, 112)],
        [(32, 3, 3, 7, 7)],
        {"strides": [1, 2, 2], "pads": [1, 3, 3] * 2},
    ),
    "Conv 3-D, depthwise": Case(
        "Conv", [(1, 64, 8, 28, 28)], [(64, 1, 3, 3, 3)], {"group": 64, "pads": [1] * 6}
    ),
    "ConvTranspose 1-D": Case(
        "ConvTranspose", [(1, 512, 64)], [(512, 256, 16)], {"strides": [8], "pads": [4, 4]}
    ),
    "ConvTranspose 2-D": Case(
        "ConvTranspose",
        [(1, 128, 32, 32)],
        [(128, 64, 4, 4)],
        {"strides": [2, 2], "pads": [1] * 4},
    ),
    "ConvTranspose 3-D": Case(
        "ConvTranspose",
        [(1, 64, 8, 14, 14)],
        [(64, 32, 4, 4, 4)],
        {"strides": [2, 2, 2], "pads": [1] * 6},
    ),
    "LSTM": Case(
        "LSTM", [(128, 1, 256)], [(1, 1024, 256), (1, 1024, 256), (1, 2048)], {"hidden_size": 256}
    ),
    "LSTM, both directions": Case(
        "LSTM",
        [(64, 8, 128)],
        [(2, 512, 128), (2, 512, 128), (2, 1024)],
        {"hidden_size": 128, "direction": "bidirectional"},
    ),
    "GRU": Case(
        "GRU", [(128, 1, 256)], [(1, 768, 256), (1, 768, 256), (1, 1536)], {"hidden_size": 256}
    ),
    "RNN": Case(
        "RNN", [(128, 1, 256)], [(1, 256, 256), (1, 256, 256), (1, 512)], {"hidden_size": 256}
    ),
    "Resize, linear": Case(
        "Resize", [(1, 64, 56, 56)], [None, None, np.array([1, 64, 112, 112])], {"mode": "linear"}
    ),
    "Resize, nearest": Case("Resize", [(1, 64, 56, 56)], [None, np.float32([1, 1, 2, 2])]),
    "Resize, cubic": Case(
        "Resize", [(1, 3, 224, 224)], [None, np.float32([1, 1, 2, 2])], {"mode": "cubic"}
    ),
    "MaxPool 1-D": Case(
        "MaxPool", [(1, 64, 4000)], [], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}
    ),
    "MaxPool 3-D": Case("MaxPool", [(1, 32, 16, 28, 28)], [], {"kernel_shape": [2, 2, 2]}),
    "AveragePool 3-D": Case("AveragePool", [(1, 32, 16, 28, 28)], [], {"kernel_shape": [3, 3, 3]}),
    "GlobalAveragePool 3-D": Case("GlobalAveragePool", [(1, 64, 16, 28, 28)]),
    "GlobalAveragePool 1-D": Case("GlobalAveragePool", [(1, 256, 4000)]),
    "Conv 1-D, QDQ": Case(
        "Conv", [(1, 64, 1000)], [(64, 64, 3)], {"pads": [1, 1]}, is_quantised=True
    ),
    "ReduceSum, first axis": Case("ReduceSum", [(512, 2048)], [np.array([0])]),
    "CumSum, first axis": Case("CumSum", [(512, 2048)], [np.array(0)]),
    "LogSoftmax": Case("LogSoftmax", [(256, 1000)]),
    "Softmax, first axis": Case("Softmax", [(512, 1024)], [], {"axis": 0}),
    "TopK": Case("TopK", [(64, 1000)], [np.array([10])], {}, (1, 7)),
    "TopK of all": Case("TopK", [(64, 1000)], [np.array([1000])], {}, (1, 7)),
    "TopK of many": Case("TopK", [(1, 20000)], [np.array([4000])], {}, (1, 7)),
    "TopK of a long axis": Case("TopK", [(1, 200000)], [np.array([10])], {}, (1, 7)),
    "TopK of many, long axis": Case("TopK", [(1, 200000)], [np.array([1000])], {}, (1, 7)),
    "ArgMax": Case("ArgMax", [(256, 1000)], [], {"axis": 1}, (7,)),
    "Gather": Case("Gather", [(1000, 512)], [np.arange(0, 999, 3)]),
    "ScatterND": Case("ScatterND", [(1000, 512)], [np.arange(0, 999, 3)[:, None], (333, 512)]),
    "Slice": Case(
        "Slice", [(64, 56, 56)], [np.array([1, 1]), np.array([55, 55]), np.array([1, 2])]
    ),
    "Slice, steps": Case(
        "Slice",
        [(64, 56, 56)],
        [np.array([0]), np.array([56]), np.array([2]), np.array([2])],
    ),
    "Tile": Case("Tile", [(64, 500)], [np.array([8, 2])]),
    "Expand": Case("Expand", [(64, 1, 500)], [np.array([64, 16, 500])]),
    "Equal": Case("Equal", [(512, 1000), (512, 1000)], [], {}, (9,)),
    "Cast": Case("Cast", [(512, 1000)], [], {"to": 6}, (6,)),
    "Transpose": Case("Transpose", [(8, 128, 64, 64)], [], {"perm": [0, 2, 3, 1]}),
    "Pad": Case("Pad", [(1, 64, 112, 112)], [np.array([0, 0, 3, 3, 0, 0, 3, 3])]),
    "Gemm of one column": Case("Gemm", [(512, 1024)], [(1024, 1)]),
    "Gemm of ten columns": Case("Gemm", [(512, 1024)], [(1024, 10)]),
    **{
        name: Case(name, [(1, 1000000)])
        for name in ("Sin", "Cos", "Sqrt", "Exp", "Log", "Tanh", "Mish", "Softplus", "Round")
    },
    "Pow": Case("Pow", [(1, 1000000)], [np.array(1.7, np.float32)]),
    "DFT": Case("DFT", [(16, 1024, 1)], [None, np.array(1)]),
    "DFT, any length": Case("DFT", [(1, 1000, 1)], [None, np.array(1)]),
    "STFT": Case("STFT", [(1, 16000, 1)], [np.array(160), (400,), np.array(400)]),
    "MatMul, float16": Case("MatMul", [(128, 768)], [(768, 768)], dtype=np.float16),
    "MatMul of one row, float16": Case("MatMul", [(1, 768)], [(768, 768)], dtype=np.float16),
    "Conv 2-D, float16": Case(
        "Conv", [(1, 64, 56, 56)], [(64, 64, 3, 3)], {"pads": [1] * 4}, dtype=np.float16
    ),
    "MatMul, float64": Case("MatMul", [(128, 768)], [(768, 768)], dtype=np.float64),
    "Gemm, float64": Case("Gemm", [(64, 512)], [(512, 512), (512,)], dtype=np.float64),
}


def main(names: list[str]) -> None:
    """Print a line for each operator."""
    print(f"{'':26} {'ms':>8} {'rate':>13} of limit  of ORT; two threads: of ORT  of one")
    workers = [_started(threads) for threads in THREADS]
    for name in names or CASES:
        (note, most), _ = [worker.submit(prepare, name).result() for worker in workers]
        rounds: list[list[list[float]]] = []
        end = time.perf_counter() + SECONDS
        while len(rounds) < CALLS[0] or (len(rounds) < CALLS[1] and time.perf_counter() < end):
            rounds.append([worker.submit(sample).result() for worker in workers])
        print(f"{name:26} {_line(CASES[name], most, rounds)}{note}", flush=True)


def _started(threads: int) -> ProcessPoolExecutor:
    """Start a process whose packages use so many threads."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "TVM_NUM_THREADS"), str(threads))
    worker = ProcessPoolExecutor(1, get_context("spawn"))
    worker.submit(int).result()
    return worker


def _line(case: Case, most: int, rounds: list[list[list[float]]]) -> str:
    (ours, peer, limit), (ours_of_two, peer_of_two, _) = (
        [min(times) for times in zip(*samples, strict=True)]
        for samples in zip(*rounds, strict=True)
    )
    work = _operations(case)
    rate, unit = (work or _nbytes(case)) / ours / 1e9, "GFLOP/s" if work else "GB/s"
    return (
        f"{1e3 * ours:8.3f} {rate:5.0f} {unit:7} {rate / (most / limit / 1e9):8.2f} "
        f"{ours / peer:7.2f} {ours_of_two / peer_of_two:20.2f} {ours_of_two / ours:7.2f}"
    )


def _operations(case: Case) -> int:
    """Return the additions and multiplications of a product, or 0 for another operator."""
    x, weight = case.inputs[0], [*case.inputs[1:], *case.weights][:1]
    if case.operator in ("LSTM", "GRU", "RNN"):
        return 2 * math.prod(x[:2]) * sum(math.prod(one) for one in case.weights[:2])
    if case.operator in ("Gemm", "MatMul"):
        return 2 * x[0] * math.prod(weight[0])
    if case.operator == "ConvTranspose":
        return 2 * x[0] * math.prod(x[2:]) * math.prod(weight[0])
    if case.operator == "Conv":
        return 2 * x[0] * math.prod(_made(case)[0].shape[2:]) * math.prod(weight[0])
    return 0


def _nbytes(case: Case) -> int:
    """Return the size of the inputs, the weights and the results."""
    proto, x = model_of(case)
    weights = [numpy_helper.to_array(one) for one in proto.graph.initializer]
    return sum(one.nbytes for one in (*x, *weights, *_made(case)))


def _made(case: Case) -> list[np.ndarray]:
    proto, x = model_of(case)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    made: list[np.ndarray] = session.run(None, {f"x{i}": array for i, array in enumerate(x)})
    return made


_CALLS: list[Callable[[], Any]] = []  # of the prepared operator, in a worker


def prepare(name: str) -> tuple[str, int]:
    """Make the calls of an operator, the peer's and the limit's.

    Returns what the export notes, and the operations or bytes of the limit.
    """
    proto, x = model_of(CASES[name])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads = 1
    session, notes = onnxruntime.InferenceSession(proto.SerializeToString(), options), io.StringIO()
    with TemporaryDirectory(prefix="onnx-operators-") as folder, redirect_stderr(notes):
        build = packer.Build(cpu="native")
        path = packer.export_library(packer.from_onnx(proto), Path(folder) / "m.so", build=build)
        main = runtime.load(path)["main"]
    given = {f"x{i}": array for i, array in enumerate(x)}
    most, limit = _limit(CASES[name])
    _CALLS[:] = [lambda: main(*x), lambda: session.run(None, given), limit]
    return "  plain loops" if "plain loops" in notes.getvalue() else "", most


def _limit(case: Case) -> tuple[int, Callable[[], Any]]:
    """Return a loop of products, or a copy of as many bytes as an operator reads and writes."""
    if not _operations(case):
        half = np.ones(_nbytes(case) // 2, np.uint8)
        copy = half.copy()
        return _nbytes(case), lambda: np.copyto(copy, half)
    kind = "double" if case.dtype == np.float64 else "float"
    module = packer.CSourceModule(LOOP.format(type=kind, sums=SUMS), functions="auto")
    with TemporaryDirectory(prefix="onnx-operators-") as folder:
        build = packer.Build(cpu="native")
        loop = runtime.load(packer.export_library(module, Path(folder) / "loop.so", build=build))
    return 2 * SUMS * loop["lanes"]() * ROUNDS, lambda: loop["multiply"](ROUNDS)


def sample() -> list[float]:
    """Return the seconds of each call; of one thread as processor time."""
    clock = time.process_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter
    times = []
    for call in _CALLS:
        start = clock()
        call()
        times.append(clock() - start)
    return times


def model_of(case: Case) -> tuple[Any, list[np.ndarray]]:
    """Make the model, and inputs of it."""
    random = np.random.default_rng(1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype))
    inputs = [random.standard_normal(shape).astype(case.dtype) for shape in case.inputs]
    names, weights = [f"x{i}" for i in range(len(inputs))], []
    for i, weight in enumerate(case.weights):
        if isinstance(weight, tuple):
            weight = (0.05 * random.standard_normal(weight)).astype(case.dtype)
        names.append("" if weight is None else f"w{i}")
        if weight is not None:
            weights.append(numpy_helper.from_array(np.asarray(weight), names[-1]))
    outputs = [
        helper.make_tensor_value_info(f"y{i}", dtype, None)
        for i, dtype in enumerate(case.outputs or (kind,))
    ]
    results = [value.name for value in outputs]
    nodes = [helper.make_node(case.operator, names, results, **case.attributes)]
    if case.is_quantised:
        nodes = _quantised(nodes[0], weights)
    values = [helper.make_tensor_value_info(f"x{i}", kind, x.shape) for i, x in enumerate(inputs)]
    graph = helper.make_graph(nodes, "g", values, outputs, weights)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), inputs


def _quantised(node: Any, weights: list[Any]) -> list[Any]:
    """Put a quantisation to 8 bits and back around the inputs and the result of a node."""
    weights.append(numpy_helper.from_array(np.float32(0.03), "scale"))
    weights.append(numpy_helper.from_array(np.int8(0), "zero"))
    made = []
    for name in [*node.input, "result"]:
        source = node.output[0] if name == "result" else name
        outputs = [f"{name}.q", "y" if name == "result" else f"{name}.d"]
        for operator, pair in zip(
            ("QuantizeLinear", "DequantizeLinear"),
            ((source, outputs[0]), outputs),
            strict=True,
        ):
            made.append(helper.make_node(operator, [pair[0], "scale", "zero"], [pair[1]]))
    final = node.output[0]
    node = helper.make_node(
        node.op_type,
        [f"{name}.d" for name in node.input],
        ["result.f"],
        **{attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute},
    )
    made[-2].input[0] = "result.f"
    made[-1].output[0] = final
    return [*made[:-2], node, *made[-2:]]


if __name__ == "__main__":
    main(sys.argv[1:])
