"""Transformers with open batch and length beside their fixed shapes and ONNX Runtime.

python benchmarks/open_shapes.py [NAME ...]: in the environment of the importer of models, with one
thread. Calls of libraries and of the peer take turns. Prints, for each model, medians over shapes
of the ratio of times, the cost of the first call of a shape, the time of both exports, the
resident memory of a process after all shapes, beside the library of the largest one, and the
processor time of a fresh process until its first result, less a later call, beside the peer's.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}
sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

import packer
import runtime
from importers.onnx.tests.support.architectures import LARGER, export

NAMES = ("bert", "roberta", "gpt2", "llama", "qwen2")
NUM_SHAPES, NUM_FIXED, NUM_CALLS, NUM_PROCESSES = 20, 4, 15, 7
_PROCESS = """
import sys, runtime
main = runtime.load(sys.argv[1])["main"]
import numpy
for inputs in numpy.load(sys.argv[2], allow_pickle=True):
    main(*inputs)
print(open("/proc/self/smaps_rollup").read())
"""
# Programs of fresh processes, without numpy where it is not needed; argv is the model, the int64
# numbers of all inputs, and their shape. They print their processor time less that of both calls.
_END = """
import time
call()
start = time.process_time()
call()
end = time.process_time()
print(end - 2 * (end - start))
"""
_OURS = f"""
import sys, runtime
shape = tuple(map(int, sys.argv[3].split("x")))
data = memoryview(open(sys.argv[2], "rb").read())
count = 8 * shape[0] * shape[1]
given = [data[at : at + count].cast("q", shape) for at in range(0, len(data), count)]
main = runtime.load(sys.argv[1])["main"]
call = lambda: main(*given)
{_END}"""
_PEERS = f"""
import sys, numpy, onnxruntime
shape = tuple(map(int, sys.argv[3].split("x")))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options)
given = numpy.fromfile(sys.argv[2], "i8").reshape(-1, *shape)
named = {{one.name: array for one, array in zip(session.get_inputs(), given)}}
call = lambda: session.run(None, named)
{_END}"""


def main(names: list[str]) -> None:
    """Print a line for each model."""
    warnings.simplefilter("ignore")
    head = "model     of fixed  of ORT (worst)  first call  export, of fixed  memory, of fixed"
    print(f"{head}  process, of ORT")
    for name in names or NAMES:
        with TemporaryDirectory(prefix="open-shapes-") as folder:
            print(compare(name, Path(folder)), flush=True)


def compare(name: str, folder: Path) -> str:
    """Measure one model."""
    path = folder / "model.onnx"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        export(name, path, LARGER)
    random = np.random.default_rng(1)
    shapes = [(int(random.integers(1, 5)), int(random.integers(8, 129))) for _ in range(NUM_SHAPES)]
    library(path, folder / "first.so", None)  # the modules of Python are imported
    opened, seconds = library(path, folder / "open.so", None)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    of_ort, first = [], []
    for shape in shapes:
        given = inputs(session, shape)
        start = time.perf_counter()
        opened(*given.values())
        first.append(time.perf_counter() - start)
        ours, theirs = turns(
            lambda given=given: opened(*given.values()),
            lambda given=given: session.run(None, given),
        )
        first[-1] -= ours
        of_ort.append(ours / theirs)
    of_fixed, exports = [], []
    for shape in shapes[:NUM_FIXED]:
        given = inputs(session, shape)
        fixed, time_of_fixed = library(path, folder / f"{shape}.so", dict.fromkeys(given, shape))
        ours, theirs = turns(
            lambda given=given: opened(*given.values()),
            lambda given=given, fixed=fixed: fixed(*given.values()),
        )
        of_fixed.append(ours / theirs)
        exports.append(seconds / time_of_fixed)
    largest = max(shapes, key=lambda shape: shape[0] * shape[1])
    library(path, folder / "largest.so", dict.fromkeys(inputs(session, largest), largest))
    after_all = resident(folder / "open.so", [inputs(session, shape) for shape in shapes])
    of_largest = resident(folder / "largest.so", [inputs(session, largest)] * NUM_SHAPES)
    return (
        f"{name:9} {median(of_fixed):8.2f}  {median(of_ort):6.2f} ({max(of_ort):.2f})"
        f"  {1e3 * median(first):7.2f} ms  {median(exports):16.2f}"
        f"  {after_all / of_largest:16.2f}"
        f"  {of_process(folder / 'open.so', path, inputs(session, shapes[0])):15.2f}"
    )


def library(path: Path, output: Path, shapes: Any) -> tuple[Callable[..., Any], float]:
    """Export a model for this processor; return its function, and the seconds that it took.

    No compiled object of an export before is used.
    """
    os.environ["XDG_CACHE_HOME"] = str(output.with_suffix(".cache"))
    start = time.perf_counter()
    with redirect_stderr(io.StringIO()):
        module = packer.from_onnx(path, shapes)
        made = packer.export_library(module, output, build=packer.Build(cpu="native"))
    return runtime.load(made)["main"], time.perf_counter() - start


def inputs(session: Any, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return the inputs that a model has."""
    random = np.random.default_rng(0)
    given = {"input_ids": random.integers(3, 900, shape), "attention_mask": np.ones(shape, "i8")}
    return {each.name: given[each.name] for each in session.get_inputs()}


def resident(file: Path, calls: list[dict[str, np.ndarray]]) -> int:
    """Return the resident kB of a process after calls of a library (proc(5), smaps_rollup)."""
    with TemporaryDirectory() as folder:
        arrays = np.empty(len(calls), object)
        arrays[:] = [tuple(call.values()) for call in calls]
        np.save(f"{folder}/calls.npy", arrays, allow_pickle=True)
        text = launched(_PROCESS, file, f"{folder}/calls.npy")
    return int(text.split("Rss:")[1].split()[0])


def of_process(library: Path, model: Path, call: dict[str, np.ndarray]) -> float:
    """Return the processor time of a process until a result, as a part of the peer's."""
    file = library.with_suffix(".inputs")
    file.write_bytes(b"".join(array.tobytes() for array in call.values()))
    shape = "x".join(map(str, next(iter(call.values())).shape))
    pairs = [(_OURS, library), (_PEERS, model)]
    times: list[list[float]] = [[] for _ in pairs]
    for _ in range(NUM_PROCESSES):
        for (program, path), of_program in zip(pairs, times, strict=True):
            of_program.append(float(launched(program, path, file, shape)))
    return min(times[0]) / min(times[1])


def launched(program: str, *arguments: object) -> str:
    """Run a process of Python; return what it prints."""
    command = [sys.executable, "-P", "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def turns(*calls: Callable[[], Any]) -> list[float]:
    """Return the median seconds of each call, made in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(NUM_CALLS):
        for call, of_call in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            of_call.append(time.perf_counter() - start)
    return [median(of_call) for of_call in times]


if __name__ == "__main__":
    main(sys.argv[1:])
