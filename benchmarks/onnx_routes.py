"""Compare the routes from ONNX to a library, one thread, beside ONNX Runtime.

python benchmarks/onnx_routes.py [NETWORK]...

- emx: the C code of emx-onnx-cgen as it is, by gcc -O3 -march=native.
- TVM: TVM's importer and its own loops.
- TVM, with kernels: packer.operators for convolutions and products (examples/tvm_kernels).
- from_onnx: packer.operators, and emx-onnx-cgen for every operator that has no kernel.

TVM is in .venv-tvm (`make test-tvm`), or in the environment of DSO_PACKER_TVM_PYTHON.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time
from typing import Any

os.environ["TVM_NUM_THREADS"] = "1"

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from measure import Case, Row, Sample, interleave
from table import Table

import packer
import runtime

ROOT = Path(__file__).parents[1]
TVM_PYTHON = os.environ.get("DSO_PACKER_TVM_PYTHON", str(ROOT / ".venv-tvm/bin/python"))
LEVEL = "x86-64-v4" if "avx512vl" in Path("/proc/cpuinfo").read_text() else "x86-64-v3"
ROUNDS = 7
Call = Callable[[], Any]
_COMPILE = """
import sys, onnx, tvm
from tvm.relax.frontend.onnx import from_onnx
target = tvm.target.Target({"kind": "llvm", "mcpu": sys.argv[3]})
tvm.compile(from_onnx(onnx.load(sys.argv[1])), target=target).export_library(sys.argv[2])
"""


def main(names: list[str]) -> None:
    """Print a table for each network."""
    sys.path.insert(0, str(ROOT))
    from importers.onnx.tests.support.models import MODELS, sample

    for name in names or MODELS:
        model = MODELS[name]()
        with TemporaryDirectory(prefix="onnx-routes-") as folder:
            path = Path(folder, f"{name}.onnx")
            path.write_bytes(model.SerializeToString())
            print(f"\n{compare(name, path, sample(model)).text()}", flush=True)


def compare(name: str, path: Path, x: np.ndarray) -> Table:
    """Make the libraries, and measure them in turn; a route that fails has a row that says why."""
    session = _session(path)
    expected, notes, cases, failed = session(x), [], [], []
    cases.append(_case("ONNX Runtime (reference)", lambda: session(x), path))
    for route, make in ROUTES.items():
        start = perf_counter()
        try:
            library, call = make(path, x)
            result = call()
        except Exception as error:
            failed.append(Row(route, (), f"failed: {str(error).splitlines()[-1]}"))
            continue
        seconds = perf_counter() - start
        distance = np.abs(result - expected).max() / np.abs(expected).max()
        notes.append(f"{route}: made in {seconds:.0f} s, greatest difference {distance:.1e}")
        cases.append(_case(route, call, library))
    rows = interleave(cases, ROUNDS) + failed
    return Table(f"{name}, one thread", rows, "ms", "file", tuple(notes))


def _case(name: str, call: Call, file: Path) -> Case:
    def measure() -> Sample:
        call()
        start = thread_time()
        call()
        return {"seconds": thread_time() - start, "file": file.stat().st_size}

    return Case(name, measure)


def _session(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"data": x})[0]


def _emx(path: Path, x: np.ndarray) -> tuple[Path, Call]:
    """Make C code with the weights beside it, whose function writes into an array."""
    folder = path.with_suffix(".emx")
    folder.mkdir()
    command = [sys.executable, "-m", "emx_onnx_cgen", "compile", path, "model.c"]
    _run(command, folder)
    _run(
        [
            "gcc",
            "-O3",
            "-march=native",
            "-shared",
            "-fPIC",
            "-w",
            "model.c",
            "-o",
            "model.so",
            "-lm",
        ],
        folder,
    )
    library = ctypes.CDLL(str(folder / "model.so"))
    library.model_load.restype = ctypes.c_bool
    if (folder / "model.bin").exists() and not library.model_load(
        str(folder / "model.bin").encode()
    ):
        raise RuntimeError("model_load failed")
    out = np.zeros_like(_session(path)(x))

    def call() -> np.ndarray:
        library.model(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        return out

    return folder / "model.so", call


def _tvm(path: Path, x: np.ndarray) -> tuple[Path, Call]:
    output = path.with_suffix(".theirs.so")
    _run([TVM_PYTHON, "-c", _COMPILE, path, output, LEVEL], path.parent, _without_cc({}))
    return output, _loaded(output, x)


def _without_cc(changes: dict[str, str]) -> dict[str, str]:
    """Return the environment for TVM, which takes CC as one word."""
    return {k: v for k, v in {**os.environ, **changes}.items() if k != "CC"}


def _tvm_with_kernels(path: Path, x: np.ndarray) -> tuple[Path, Call]:
    """Compile in TVM's environment, which imports the packages that are measured."""
    output = path.with_suffix(".tvm.so")
    packages = path.with_suffix(".packages")
    packages.mkdir()
    for package in (packer, runtime):
        file = Path(str(package.__file__)).parent
        (packages / file.name).symlink_to(file)
    script = ROOT / "examples/tvm_kernels/compile.py"
    environment = _without_cc({"PYTHONPATH": str(packages)})
    _run([TVM_PYTHON, script, path, output, LEVEL], path.parent, environment)
    return output, _loaded(output, x)


def _from_onnx(path: Path, x: np.ndarray) -> tuple[Path, Call]:
    output = path.with_suffix(".so")
    packer.export_library(packer.from_onnx(path), output, build=packer.Build(cpu=LEVEL))
    return output, _loaded(output, x)


def _loaded(library: Path, x: np.ndarray) -> Call:
    function = runtime.load(library)["main"]
    return lambda: np.asarray(function(x))


def _run(command: list[Any], folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")


ROUTES: dict[str, Callable[[Path, np.ndarray], tuple[Path, Call]]] = {
    "emx": _emx,
    "TVM": _tvm,
    "TVM, with kernels": _tvm_with_kernels,
    "from_onnx": _from_onnx,
}

if __name__ == "__main__":
    main(sys.argv[1:])
