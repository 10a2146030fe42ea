"""The light models of the package onnx, nine published networks, beside ONNX Runtime.

    python -P importers/onnx/tests/light_models.py [NAME ...]

Prints the greatest difference of each, by the greatest result, and the seconds of its export. The
exit status is 1 if a difference is above 1e-5. Their weights are constants of one value.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import packer
import runtime

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
NAMES = sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx"))
NEAR = 1e-5


def difference(name: str, folder: Path) -> float:
    """Export a model to a folder, run it, and return its greatest difference."""
    path = FOLDER / f"light_{name}.onnx"
    output = packer.export_library(
        packer.from_onnx(path), folder / f"{name}.so", build=packer.Build(cpu="native")
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    random = np.random.default_rng(1)
    inputs = {
        one.name: random.normal(size=one.shape).astype(np.float32) for one in session.get_inputs()
    }
    found = runtime.load(output)["main"](*inputs.values())
    results = list(found) if isinstance(found, tuple) else [found]
    expected = session.run(None, inputs)
    assert [tuple(one.shape) for one in results] == [one.shape for one in expected]
    return max(
        float(np.abs(np.asarray(one) - other).max() / np.abs(other).max())
        for one, other in zip(results, expected, strict=True)
    )


def main(names: list[str]) -> int:
    """Compare these models, all by default."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in names or NAMES:
            started = time.monotonic()
            far = difference(name, Path(folder))
            worst = max(worst, far)
            print(f"{name:16} {far:8.1e} {time.monotonic() - started:6.1f} s", flush=True)
    return int(not worst <= NEAR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
