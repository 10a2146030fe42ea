"""Networks of several libraries, with random weights, beside ONNX Runtime, on one thread.

python benchmarks/onnx_networks.py [--levels] [NAME ...]: in an environment with the importer of
models, timm, torchvision and transformers; a name may have * and ?. Calls of the library and of the
peer take turns, and processor time is measured. `--levels` exports for the default levels, else for
this processor. Prints for each network the seconds of the export with its compilers, the
milliseconds, the ratio of times and the error beside the greatest number of each result, then the
median ratio, the 90th percentile and the worst.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1", "PACKER_CACHE": "off"}

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import torch
from network_rows import NAMES, make

import packer
import runtime

CALLS, SECONDS = 9, 4
BUILD = packer.Build() if "--levels" in sys.argv else packer.Build(cpu="native")
LIMITS = (1.0, 1.3, 2.0)  # of the median, the 90th percentile and the worst


def main(patterns: list[str]) -> None:
    """Print a line for each network, and the ratios of all."""
    warnings.filterwarnings("ignore")
    ratios: list[float] = []
    names = [n for n in NAMES if not patterns or any(fnmatch(n, p) for p in patterns)]
    print(f"{'network':30} {'export':>7} {'ms':>9} {'of ORT':>7} {'error':>8}")
    for name in names:
        try:
            seconds, ours, ratio, error = compare(name)
        except (
            Exception
        ) as failed:  # torch has no export of it, or we refuse it: a row that says so
            print(
                f"{name:30} {type(failed).__name__}: {str(failed).splitlines()[0][:120]}",
                flush=True,
            )
            continue
        ratios.append(ratio)
        print(f"{name:30} {seconds:7.1f} {ours:9.2f} {ratio:7.2f} {error:8.1e}", flush=True)
    if len(ratios) > 1:
        found = (median(ratios), quantiles(ratios, n=10)[-1], max(ratios))
        words = ("median", "90th percentile", "worst")
        print(
            "; ".join(
                f"{w} {r:.2f} (limit {m})" for w, r, m in zip(words, found, LIMITS, strict=True)
            )
        )


def compare(name: str) -> tuple[float, float, float, float]:
    """Return the export's seconds, our milliseconds, the ratio of times and the error."""
    model, inputs = make(name)
    with TemporaryDirectory(prefix="onnx-networks-") as folder:
        path = Path(folder) / "m.onnx"
        with torch.no_grad():
            torch.onnx.export(model.eval(), inputs, path, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options)
        start = sum(os.times()[:4])  # with the compilers
        module = packer.from_onnx(path)
        library = packer.export_library(module, Path(folder) / "m.so", build=BUILD)
        seconds = sum(os.times()[:4]) - start
        main = runtime.load(library)["main"]
        given = [x.numpy() for x in inputs]
        names = [value.name for value in session.get_inputs()]
        return seconds, *measure(
            lambda: main(*given), lambda: session.run(None, dict(zip(names, given, strict=True)))
        )


def measure(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float, float]:
    """Return our milliseconds, the ratio of the medians and the error."""
    made, wanted = ours(), theirs()[0]
    found = made.numpy() if hasattr(made, "numpy") else made[0].numpy()
    error = float(
        np.max(np.abs(found.astype(np.float64) - wanted)) / max(np.max(np.abs(wanted)), 1e-30)
    )
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + SECONDS
    while len(times[0]) < 3 or (len(times[0]) < CALLS and time.perf_counter() < end):
        for call, of_call in zip((ours, theirs), times, strict=True):
            start = time.process_time()
            call()
            of_call.append(time.process_time() - start)
    mine, peer = map(median, times)
    return 1e3 * mine, mine / peer, error


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word != "--levels"])
