"""Runs exported node tests in a process that has the runtime and NumPy, but not onnx.

    python -m node_runner FOLDER NAME...

reads ``NAME.so`` and ``NAME.json`` (the inputs), and writes ``NAME.out.json`` with the outputs, or
with the error. The current test is in ``running``, so that a crash is the test's.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import runtime

FORBIDDEN = ("onnx", "onnx_ir", "packer", "google.protobuf", "torch", "tvm", "emx_onnx_cgen")


def main(folder: Path, names: list[str]) -> None:
    """Run the tests in order."""
    for name in names:
        (folder / "running").write_text(name)
        inputs = json.loads((folder / f"{name}.json").read_text())
        try:
            outcome = {"outputs": run(folder / f"{name}.so", inputs)}
        except Exception as error:
            outcome = {"error": f"{type(error).__name__}: {error}"}
        (folder / f"{name}.out.json").write_text(json.dumps(outcome))
    found = [module for module in FORBIDDEN if module in sys.modules]
    assert not found, found
    (folder / "running").write_text("")


def run(path: Path, inputs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Call ``main`` of a library with arrays."""
    model = runtime.load(path)
    results = model["main"](*(tensor(one) for one in inputs))
    if len(model.outputs) == 1:
        results = [results]
    return [described(result) for result in results]


def tensor(stored: Any) -> Any:
    """Make a tensor of bytes, or a list of tensors, or None."""
    if stored is None or isinstance(stored, list):
        return stored and [tensor(one) for one in stored]
    data = base64.b64decode(str(stored["data"]))
    return runtime.Tensor(data, tuple(stored["shape"]), str(stored["dtype"]))


def described(result: Any) -> Any:
    """Describe a tensor with its bytes, or each tensor of a sequence."""
    if result is None or isinstance(result, (tuple, list)):
        return result and [described(one) for one in result]
    return {
        "dtype": str(result.dtype),
        "shape": list(result.shape),
        "data": base64.b64encode(result.raw.tobytes()).decode(),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
