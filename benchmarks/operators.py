"""The operators of packer.operators, each beside ONNX Runtime, on one thread and on two."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from measure import Case, Launcher, Sample, interleave
from table import Table

import packer
import packer.operators
import runtime

ROUNDS = 15
SECONDS = 0.01  # of one sample, about
COUNT = 4  # convolutions in a model
LEVELS = {"-march=x86-64-v4": "avx512vl", "-march=x86-64-v3": "avx2"}

PRODUCTS = ((128, 768, 768), (128, 768, 3072), (128, 3072, 768), (512, 512, 512), (1, 2048, 1000))
CONVOLUTIONS = (  # channels, side, window, groups
    *((64, 56, 3, 1), (128, 28, 3, 1), (256, 14, 3, 1), (512, 7, 3, 1)),
    *((64, 56, 1, 1), (256, 14, 1, 1), (512, 7, 1, 1)),
    *((144, 56, 3, 144), (384, 14, 3, 384), (960, 7, 3, 960), (128, 28, 3, 32)),
)
INTEGER_CONVOLUTIONS = (
    *((64, 56, 3, 1), (256, 14, 3, 1), (64, 56, 1, 1), (256, 14, 1, 1), (384, 14, 3, 384)),
)
ATTENTIONS = ((12, 128, 64), (8, 1024, 64))  # heads, rows, size

Call = Callable[[], object]
# Ours, with the level, and ONNX Runtime's for a number of threads.
Subject = tuple[str, Call, Callable[[int], Call]]


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure each operator; the compiler is asked for this machine's level."""
    del launch
    # Read at the first launch: no other subject uses the pool in this process.
    os.environ["TVM_NUM_THREADS"] = "2"
    model = runtime.load(_library(folder))
    subjects = [
        *(_product(model, *extents) for extents in PRODUCTS),
        *(_convolution(model, *extents) for extents in CONVOLUTIONS),
        *(_integer_product(model, *extents) for extents in PRODUCTS),
        *(_integer_convolution(model, *extents) for extents in INTEGER_CONVOLUTIONS),
        *(_attention(model, *extents) for extents in ATTENTIONS),
    ]
    return [_table(model, threads, *subject) for subject in subjects for threads in (1, 2)]


def _library(folder: Path) -> Path:
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    options = [option for option, flag in LEVELS.items() if flag in flags][:1]
    source = Path(__file__).with_suffix(".c")
    include = [packer.operators.INCLUDE]
    module = packer.CSourceModule(source, functions="auto", include=include, options=options)
    for part in packer.operators.modules(options=options):
        module.import_module(part)
    return packer.export_library(module, folder / "operators.so")


def _table(
    model: runtime.Module, threads: int, title: str, ours: Call, peer: Callable[[int], Call]
) -> Table:
    def operators() -> Call:
        def call() -> None:
            model["use_threads"](threads > 1)
            ours()

        return call

    # The time of one thread is its processor time, in which no other process has a part.
    clock = thread_time if threads == 1 else perf_counter
    cases = [
        Case("ONNX Runtime (reference)", _timed(lambda: peer(threads), clock), "onnxruntime"),
        Case("packer.operators", _timed(operators, clock)),
    ]
    counted = "one thread" if threads == 1 else f"{threads} threads"
    return Table(f"{title}, {counted}", interleave(cases, ROUNDS), "us")


def _timed(prepare: Callable[[], Call], clock: Callable[[], float]) -> Callable[[], Sample]:
    """Repeat a call for a sample; it is prepared at its first measurement."""
    prepared: list[tuple[Call, int]] = []

    def measure() -> Sample:
        if not prepared:
            call = prepare()
            call()
            start = perf_counter()
            call()
            prepared.append((call, max(1, int(SECONDS / (perf_counter() - start)))))
        call, rounds = prepared[0]
        start = clock()
        for _ in range(rounds):
            call()
        return {"seconds": (clock() - start) / rounds}

    return measure


def _floats(*shape: int) -> np.ndarray:
    """Random floats at a multiple of 64 bytes."""
    random = np.random.default_rng(1)
    return _aligned((random.random(shape) - 0.5).astype(np.float32))


def _aligned(array: np.ndarray) -> np.ndarray:
    room = np.zeros(array.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


def _session(nodes: list[Any], inputs: dict[str, Any], weights: dict[str, Any]) -> Any:
    """Return a function that makes a call of ONNX Runtime for a number of threads."""

    def prepare(threads: int) -> Call:
        import onnxruntime  # type: ignore[import-untyped]
        from onnx import helper, numpy_helper

        values = [
            helper.make_tensor_value_info(name, _kind(array), array.shape)
            for name, array in inputs.items()
        ]
        first = next(iter(inputs.values()))
        result = helper.make_tensor_value_info("y", _kind(first), None)
        made = [helper.make_node(kind, *rest, **names) for kind, *rest, names in nodes]
        kept = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph(made, "graph", values, [result], kept)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return lambda: session.run(None, inputs)

    return prepare


def _kind(array: np.ndarray) -> int:
    from onnx import TensorProto

    return int(TensorProto.FLOAT if array.dtype == np.float32 else TensorProto.UINT8)


def _product(model: runtime.Module, rows: int, inner: int, columns: int) -> Subject:
    a, b, out = _floats(rows, inner), _floats(inner, columns), _floats(rows, columns)
    packed = _aligned(packer.operators.pack_matmul(b))
    workspace = _floats(model["product_workspace"](rows, inner, columns) + 1)
    run = model["product"]
    peer = _session([("MatMul", ["a", "b"], ["y"], {})], {"a": a}, {"b": b})
    call = lambda: run(a, packed, out, workspace, rows, inner, columns)  # noqa: E731
    return f"product {rows} x {inner} x {columns}", call, peer


def _convolution(
    model: runtime.Module, channels: int, side: int, window: int, groups: int
) -> Subject:
    weight = _floats(channels, channels // groups, window, window) * 0.01
    packed = _aligned(packer.operators.pack_conv2d(weight, groups=groups))
    first, second = (np.zeros((channels // 16, side + 2, side + 2, 16), "f4") for _ in range(2))
    first, second = _aligned(first), _aligned(second)
    run = model["convolutions"]
    names = ["x", *(f"x{i}" for i in range(1, COUNT)), "y"]
    attributes = {
        "kernel_shape": [window] * 2, "pads": [window // 2] * 4, "group": groups,
    }  # fmt: skip
    nodes = [("Conv", [names[i], "w"], [names[i + 1]], attributes) for i in range(COUNT)]
    x = _floats(1, channels, side, side)
    call = lambda: run(first, second, packed, channels, side, window, groups, COUNT)  # noqa: E731
    of = f", {groups} groups" if groups > 1 else ""
    title = f"{COUNT} convolutions {window} x {window}, {channels} x {side} x {side}{of}"
    return title, call, _session(nodes, {"x": x}, {"w": weight})


# Of an image or a left factor, of a weight, and of a result: their scales, and the zeros.
_QUANTISED = {
    **{
        name: np.array(value, np.float32)
        for name, value in (("sa", 2**-5), ("sw", 2**-7), ("s", 1))
    },
    "z": np.array(128, np.uint8),
    "zw": np.array(0, np.int8),
}
_BEFORE, _AFTER = ["sa", "z", "w", "sw", "zw"], ["s", "z"]


def _bytes(dtype: str, *shape: int) -> np.ndarray:
    """Random integers at a multiple of 64 bytes."""
    limits = np.iinfo(dtype)
    random = np.random.default_rng(1)
    return _aligned(random.integers(limits.min, limits.max + 1, shape).astype(dtype))


def _integer_product(model: runtime.Module, rows: int, inner: int, columns: int) -> Subject:
    a, w = _bytes("uint8", rows, inner), _bytes("int8", inner, columns)
    packed, out = _aligned(packer.operators.pack_lowp_matmul(w)), _bytes("uint8", rows, columns)
    run, extents = model["integers"], (rows, inner, columns)
    workspace = _bytes("uint8", run(a, packed, out, None, *extents))
    nodes = [("QLinearMatMul", ["a", *_BEFORE, *_AFTER], ["y"], {})]
    peer = _session(nodes, {"a": a}, {"w": w, **_QUANTISED})
    call = lambda: run(a, packed, out, workspace, *extents)  # noqa: E731
    return f"product of 8 bits {rows} x {inner} x {columns}", call, peer


def _integer_convolution(
    model: runtime.Module, channels: int, side: int, window: int, groups: int
) -> Subject:
    w = _bytes("int8", channels, channels // groups, window, window)
    packed = _aligned(packer.operators.pack_lowp_conv2d(w, groups=groups))
    first, second = (_bytes("uint8", -(-channels // 32), side, side, 32) for _ in range(2))
    run, extents = model["integer_convolutions"], (channels, side, window, groups, COUNT)
    workspace = _bytes("uint8", run(first, second, packed, None, *extents) + 1)
    names = ["x", *(f"x{i}" for i in range(1, COUNT)), "y"]
    attributes = {"kernel_shape": [window] * 2, "pads": [window // 2] * 4, "group": groups}
    nodes = [
        ("QLinearConv", [names[i], *_BEFORE, "sa", "z"], [names[i + 1]], attributes)
        for i in range(COUNT)
    ]
    peer = _session(nodes, {"x": _bytes("uint8", 1, channels, side, side)}, {"w": w, **_QUANTISED})
    call = lambda: run(first, second, packed, workspace, *extents)  # noqa: E731
    of = f", {groups} groups" if groups > 1 else ""
    title = f"{COUNT} convolutions of 8 bits {window} x {window}, {channels} x {side} x {side}{of}"
    return title, call, peer


def _attention(model: runtime.Module, heads: int, rows: int, size: int) -> Subject:
    q, k, v, out = (_floats(heads, rows, size) for _ in range(4))
    workspace = _floats(model["attention_workspace"](heads, rows, size))
    run = model["attention"]
    nodes = [
        ("Transpose", ["k"], ["t"], {"perm": [0, 2, 1]}),
        ("MatMul", ["q", "t"], ["p"], {}),
        ("Mul", ["p", "scale"], ["s"], {}),
        ("Softmax", ["s"], ["e"], {"axis": -1}),
        ("MatMul", ["e", "v"], ["y"], {}),
    ]
    scale = np.array(size**-0.5, np.float32)
    peer = _session(nodes, {"q": q, "k": k, "v": v}, {"scale": scale})
    call = lambda: run(q, k, v, out, workspace, heads, rows, size)  # noqa: E731
    return f"attention, {heads} heads x {rows} x {size}", call, peer
