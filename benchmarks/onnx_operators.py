"""One ONNX operator in a model, beside ONNX Runtime.

python benchmarks/onnx_operators.py [NAME ...]: in the environment of the importer of models, with
one thread. Calls of the library and of the peer take turns. Prints, for each operator, the
milliseconds of processor time, the ratio of times, and whether it ran in plain loops.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from onnx import helper, numpy_helper

import packer
import runtime

NUM_CALLS = 15


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
    print(f"{'operator':26} {'ms':>8}  of ORT")
    for name in names or CASES:
        print(f"{name:26} {compare(CASES[name])}", flush=True)


def compare(case: Case) -> str:
    """Measure one operator."""
    proto, x = model_of(case)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session, notes = onnxruntime.InferenceSession(proto.SerializeToString(), options), io.StringIO()
    with TemporaryDirectory(prefix="onnx-operators-") as folder, redirect_stderr(notes):
        build = packer.Build(cpu="native")
        path = packer.export_library(packer.from_onnx(proto), Path(folder) / "m.so", build=build)
        main = runtime.load(path)["main"]
    given = {f"x{i}": array for i, array in enumerate(x)}
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(NUM_CALLS):
        for call, of_call in zip(
            (lambda: main(*x), lambda: session.run(None, given)), times, strict=True
        ):
            start = time.process_time()
            call()
            of_call.append(time.process_time() - start)
    ours, theirs = map(median, times)
    plain = "  plain loops" if "plain loops" in notes.getvalue() else ""
    return f"{1e3 * ours:8.3f}  {ours / theirs:6.2f}{plain}"


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
