"""Run a model in a separate process, and time calls on demand.

python benchmarks/models_peer.py MODEL INPUT.npy THREADS

MODEL.onnx runs in ONNX Runtime, MODEL.so in our runtime. Prints the seconds of a call for each
line of input: for one thread its processor time, else the time that passes. A line "save FILE"
writes the output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any

import numpy as np

SECONDS = 0.05  # of the calls of one sample, about


def main(path: str, array: str, threads: int) -> None:
    """Answer until the input ends."""
    x = np.load(array)
    call = (_ours if path.endswith(".so") else _onnx_runtime)(path, x, threads)
    call()
    clock = thread_time if threads == 1 else perf_counter
    start = perf_counter()
    call()
    repeats = max(1, int(SECONDS / (perf_counter() - start)))
    for line in sys.stdin:
        if line.startswith("save "):
            np.save(line.split()[1], np.asarray(call()))
            print(flush=True)
            continue
        call()  # after the other process
        start = clock()
        for _ in range(repeats):
            call()
        print((clock() - start) / repeats, flush=True)


def _ours(path: str, x: Any, threads: int) -> Callable[[], Any]:
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import runtime

    function = runtime.load(path)["main"]
    return lambda: function(x)


def _onnx_runtime(path: str, x: Any, threads: int) -> Callable[[], Any]:
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"data": x})[0]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
