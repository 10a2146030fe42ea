"""ONNX models that TVM compiled over packer's operators (examples/tvm_kernels) run without TVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from .conftest import TVM_PYTHON

ROOT = Path(__file__).parents[2]
COMPILE = ROOT / "examples" / "tvm_kernels" / "compile.py"
# Makes a model, its input, and the output of ONNX's reference evaluator.
MODEL = """
import sys
import numpy as np
from onnx.reference import ReferenceEvaluator
from importers.onnx.tests.support import models

name, arguments, batch, output = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
model = getattr(models, name)(**arguments)
x = models.sample(model, batch)
(y,) = ReferenceEvaluator(model).run(None, {"data": x})
open(output + ".onnx", "wb").write(model.SerializeToString())
np.savez(output + ".npz", x=x, y=y)
"""


@pytest.mark.parametrize(
    ("name", "arguments", "batch"),
    [
        ("resnet18", {"side": 32, "classes": 10}, 1),
        ("mobilenet_v2", {"side": 32, "classes": 10}, 1),
        ("encoder", {"layers": 1, "rows": 8, "hidden": 32, "heads": 2, "inner": 48}, 1),
        ("unet", {"side": 16, "channels": (4, 20)}, 1),
        ("unet", {"side": 16, "channels": (4, 20), "batch": "batch"}, 3),
    ],
)
def test_models_compute_the_values_of_onnx(
    tmp_path: Path, name: str, arguments: dict[str, object], batch: int
) -> None:
    """Static shapes and a symbolic batch; convolutions and products come from kernels.c."""
    for package in (packer, runtime):
        folder = Path(str(package.__file__)).parent
        (tmp_path / folder.name).symlink_to(folder)
    made = tmp_path / "model"
    python(str(ROOT), "-c", MODEL, name, repr(arguments), str(batch), str(made))
    python(str(tmp_path), str(COMPILE), f"{made}.onnx", f"{made}.so")
    model, arrays = runtime.load(f"{made}.so"), np.load(f"{made}.npz")
    result = model["main"](arrays["x"]).numpy()
    assert np.abs(result - arrays["y"]).max() <= 1e-5 * np.abs(arrays["y"]).max()
    assert {"conv2d", "dense", "matmul"} & called(model)
    assert not {"tvm", "onnx"} & set(sys.modules)


def python(path: str, *arguments: str) -> None:
    """Run TVM's Python."""
    environment = {**os.environ, "PYTHONPATH": path}
    for name in ("CC", "PYTHONSAFEPATH"):  # TVM takes CC as one word
        environment.pop(name, None)
    command = [TVM_PYTHON, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def called(model: runtime.Module) -> set[str]:
    """The names in the bytecode."""
    return {function.name for function in model.functions}
