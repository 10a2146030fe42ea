"""Five networks, imported from ONNX, beside ONNX Runtime: a call, and a fresh process."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from measure import Case, Launcher, Sample, interleave, is_installed
from operators import LEVELS
from table import Table

import packer

ROOT = Path(__file__).parents[1]
PACKAGES = ("onnx", "onnxruntime", "onnxscript", "emx_onnx_cgen")
ROUNDS, PROCESS_ROUNDS = 15, 7
# The greatest ratio of a call on one thread that is aimed at.
AIMS = {"resnet18": 1.0, "resnet50": 1.0, "mobilenet_v2": 1.3, "encoder": 1.0, "unet": 1.3}

# Programs of fresh processes; argv is the model, the input's floats, and its shape. They print the
# seconds of the second call, and their private memory in KiB.
_END = """
from time import perf_counter
call()
start = perf_counter()
call()
seconds = perf_counter() - start
lines = open("/proc/self/smaps_rollup").read().splitlines()
print(seconds, sum(int(line.split()[1]) for line in lines if line.startswith("Private_")))
"""
RUNTIME = f"""
import sys, os
os.environ["TVM_NUM_THREADS"] = "1"
import runtime
shape = tuple(map(int, sys.argv[3].split("x")))
x = memoryview(open(sys.argv[2], "rb").read()).cast("f", shape)
main = runtime.load(sys.argv[1])["main"]
def call():
    main(x)
{_END}"""
ONNX_RUNTIME = f"""
import sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
x = numpy.fromfile(sys.argv[2], "f4").reshape(tuple(map(int, sys.argv[3].split("x"))))
model = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
def call():
    model.run(None, {{"data": x}})
{_END}"""


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure each network, with the compiler's options for this machine's level."""
    missing = [name for name in PACKAGES if not is_installed(name)]
    if missing:
        rows = interleave([Case("dso-packer", dict, missing[0])], 0)
        return [Table("networks from ONNX", rows, "ms")]
    sys.path.insert(0, str(ROOT))
    from importers.onnx.tests.support.models import MODELS, sample

    made = []
    for name, make in MODELS.items():
        model = make()
        subject = Subject(name, model, sample(model), folder)
        made += [*(subject.calls(threads) for threads in (1, 2)), subject.processes(launch)]
    return made


class Subject:
    """A network, with its files: `.onnx`, `.so`, and the input."""

    def __init__(self, name: str, model: Any, x: np.ndarray, folder: Path) -> None:
        self.name, self.shape = name, "x".join(map(str, x.shape))
        self.onnx, self.library, self.input, self.raw = (
            folder / f"{name}.{suffix}" for suffix in ("onnx", "so", "npy", "f32")
        )
        self.onnx.write_bytes(model.SerializeToString())
        np.save(self.input, x)
        x.tofile(self.raw)
        start = perf_counter()
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
        level = next((o.partition("=")[2] for o, flag in LEVELS.items() if flag in flags), None)
        packer.export_library(packer.from_onnx(model), self.library, build=packer.Build(cpu=level))
        weights = sum(4 * math.prod(tensor.dims) for tensor in model.graph.initializer)
        beyond = self.library.stat().st_size - weights
        self.notes = (
            f"export {perf_counter() - start:.1f} s; model.so = {weights / 1e6:.2f} MB of weights "
            f"{'+' if beyond >= 0 else '-'} {abs(beyond) / 1e6:.2f} MB",
        )

    def calls(self, threads: int) -> Table:
        """Measure calls in two processes, one after the other."""
        with ExitStack() as stack:
            theirs, ours = (
                stack.enter_context(Peer([path, self.input, threads]))
                for path in (self.onnx, self.library)
            )
            cases = [
                Case("ONNX Runtime (reference)", theirs.sample),
                Case("dso-packer", ours.sample),
            ]
            rows = interleave(cases, ROUNDS)
            expected, result = (peer.output(self.input) for peer in (theirs, ours))
        distance = np.abs(result - expected).max() / np.abs(expected).max()
        least = [min(sample["seconds"] for sample in row.samples) for row in rows]
        aim = f"; aim: a ratio of at most {AIMS[self.name]}" if threads == 1 else ""
        notes = (
            f"the least: {1e3 * least[1]:.2f} and {1e3 * least[0]:.2f} ms, "
            f"ratio {least[1] / least[0]:.2f}{aim}",
            f"greatest difference {distance:.1e} of the greatest result",
        )
        counted = "one thread" if threads == 1 else f"{threads} threads"
        return Table(f"{self.name}: a call, {counted}", rows, "ms", notes=notes)

    def processes(self, launch: Launcher) -> Table:
        """Measure fresh processes: until the first result, less a later call."""

        def start(code: str, model: Path) -> Sample:
            command: list[str | Path] = [sys.executable, "-I", "-c", code, model, self.raw]
            ended = launch([*command, self.shape])
            second, private = ended.output.split()
            # Both calls are part of the process.
            return {
                "seconds": ended.seconds - 2 * float(second),
                "private": 1024 * float(private),
            }

        cases = [
            Case("ONNX Runtime (reference)", lambda: start(ONNX_RUNTIME, self.onnx)),
            Case("dso-packer", lambda: start(RUNTIME, self.library)),
        ]
        rows = interleave(cases, PROCESS_ROUNDS)
        private = [np.median([sample["private"] for sample in row.samples]) for row in rows]
        notes = (
            f"aim: a ratio of at most 0.25, and of private memory at most 0.5; "
            f"it is {private[1] / private[0]:.2f}",
            *self.notes,
        )
        title = f"{self.name}: a fresh process with its first result, less a later call"
        return Table(title, rows, "ms", "private", notes)


class Peer:
    """A process that times calls of one model: models_peer.py."""

    def __init__(self, arguments: Sequence[object]) -> None:
        script = Path(__file__).with_name("models_peer.py")
        command = [sys.executable, str(script), *map(str, arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def sample(self) -> Sample:
        """Take the mean of some calls."""
        return {"seconds": float(self._ask("time"))}

    def output(self, beside: Path) -> Any:
        """Return the output of a call."""
        path = beside.with_suffix(".out.npy")
        self._ask(f"save {path}")
        return np.load(path)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.communicate()
