"""ResNet-18 on one thread: a picture, and a fresh process until its first result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from measure import Case, Launcher, Sample, interleave
from table import Table

import packer
import runtime
from packer.project import read_project

EXAMPLE = Path(__file__).parents[1] / "examples" / "resnet18"
PICTURE_ROUNDS, PROCESS_ROUNDS = 25, 9
SHAPE = (1, 3, 224, 224)

# Programs of fresh processes; argv is the model and the picture's floats. PyTorch runs eagerly, as
# its users do, with weights from an .npz.
RUNTIME = """
import sys, runtime
executor = runtime.load(sys.argv[1])["default"]()
picture = memoryview(open(sys.argv[2], "rb").read()).cast("f", (1, 3, 224, 224))
executor.set_input("data", picture)
executor.run()
executor.get_output(0)
"""
ONNX_RUNTIME = """
import sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
model = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
model.run(None, {"data": numpy.fromfile(sys.argv[2], "f4").reshape(1, 3, 224, 224)})
"""
TORCH = f"""
import sys, numpy, torch
sys.path.insert(0, {str(EXAMPLE)!r})
from torch_model import Network
torch.set_num_threads(1)
picture = torch.from_numpy(numpy.fromfile(sys.argv[2], "f4").reshape(1, 3, 224, 224))
Network(dict(numpy.load(sys.argv[1])))(picture)
"""


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure the example's library, and the same network in other runtimes."""
    sys.path.insert(0, str(EXAMPLE))
    import network
    from onnx_model import onnx_model

    arrays = network.parameters()
    picture = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    library, onnx, npz, raw = (
        folder / name for name in ("resnet18.so", "resnet18.onnx", "resnet18.npz", "picture.f32")
    )
    export_example(library)
    onnx.write_bytes(onnx_model(arrays))
    np.savez(npz, **arrays)
    picture.tofile(raw)
    return [_pictures(library, onnx, arrays, picture), _processes(launch, library, onnx, npz, raw)]


def export_example(path: Path) -> Path:
    """Export the example's library."""
    project = read_project(EXAMPLE / "packer.toml")
    return packer.export_library(project.root, path, build=packer.Build(cpu=project.cpu))


def _pictures(library: Path, onnx: Path, arrays: Any, picture: np.ndarray) -> Table:
    cases = [
        Case("ONNX Runtime (reference)", _timed(lambda: _onnx_runtime(onnx, picture))),
        Case("runtime", _timed(lambda: _runtime(library, picture))),
        Case("PyTorch, eager", _timed(lambda: _torch(arrays, picture)), "torch"),
    ]
    rows = interleave(cases, PICTURE_ROUNDS)
    notes = ("aim: runtime at most 1.7 times ONNX Runtime",)
    return Table("ResNet-18: a picture, one thread", rows, "ms", notes=notes)


def _processes(launch: Launcher, library: Path, onnx: Path, npz: Path, picture: Path) -> Table:
    def python(code: str, model: Path) -> Sample:
        return launch([sys.executable, "-I", "-c", code, model, picture]).sample()

    cases = [
        Case("ONNX Runtime (reference)", lambda: python(ONNX_RUNTIME, onnx)),
        Case("runtime", lambda: python(RUNTIME, library)),
        Case("PyTorch, eager", lambda: python(TORCH, npz), "torch"),
    ]
    rows = interleave(cases, PROCESS_ROUNDS)
    notes = ("aim: runtime at most 250 ms and 100 MB (95 MiB)",)
    title = "ResNet-18: a fresh process, from start to end, with one picture"
    return Table(title, rows, "ms", "peak", notes)


Call = Callable[[], object]


def _runtime(library: Path, picture: np.ndarray) -> Call:
    executor = runtime.load(library)["default"]()

    def classify() -> None:
        executor.set_input("data", picture)
        executor.run()
        executor.get_output(0)

    return classify


def _onnx_runtime(onnx: Path, picture: np.ndarray) -> Call:
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"data": picture})


def _torch(arrays: Any, picture: np.ndarray) -> Call:
    import torch
    from torch_model import Network

    torch.set_num_threads(1)
    model, data = Network(arrays), torch.from_numpy(picture)
    return lambda: model(data)


def _timed(prepare: Callable[[], Call]) -> Callable[[], Sample]:
    """Time a call that is prepared at its first measurement, so that a package may be missing."""
    prepared: list[Call] = []

    def measure() -> Sample:
        if not prepared:
            prepared.append(prepare())
        start = perf_counter()
        prepared[0]()
        return {"seconds": perf_counter() - start}

    return measure
