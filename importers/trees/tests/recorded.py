"""A plugin of pytest: each model that a test gives to ONNX Runtime is read by from_trees, too.

suites.py runs the tests of another package with it. The outcomes are lines of the file that
RECORDED names: equal, refused with the words, or other scores.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import packer
import runtime

_Session = onnxruntime.InferenceSession
_seen: set[bytes] = set()


class _Recorded(_Session):  # type: ignore[misc]
    """A session whose first result is compared."""

    def __init__(self, model: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(model, *arguments, **options)
        self._model = Path(model).read_bytes() if isinstance(model, str) else bytes(model)

    def run(self, names: Any, inputs: Any, *arguments: Any) -> Any:
        """Run the model, and the library of it."""
        found = super().run(names, inputs, *arguments)
        if self._model not in _seen:
            _seen.add(self._model)
            with Path(os.environ["RECORDED"]).open("a") as file:
                file.write(f"{self._outcome(inputs)}\t{os.environ['PYTEST_CURRENT_TEST']}\n")
        return found

    def _outcome(self, inputs: Any) -> str:
        expected = super().run(None, inputs)[-1]
        if isinstance(expected, list):
            expected = [[*row.values()] for row in expected]
        columns = [np.asarray(inputs[one.name]) for one in self.get_inputs()]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(self._model)
            try:
                module = packer.from_trees(path)
            except packer.ExportError as error:
                words = str(error).partition("model.onnx: ")[2]
                return "refused: " + re.sub(r"'[^']*'|[\d.]+", "_", words)
            if any(column.dtype.kind not in "fiub" for column in columns):
                return "texts: accepted"
            rows = np.concatenate([x.reshape(len(x), -1) for x in columns], axis=1)
            rows = rows.astype("float32" if rows.dtype == "float32" else "float64")
            predict = runtime.load(packer.export_library(module, Path(folder, "score.so")))[
                "predict"
            ]
            try:
                found = np.asarray(predict(rows))
            except ValueError as error:
                return f"error: {error}"
        expected = np.asarray(expected)
        if found.size != expected.size:
            return f"other shape: {found.shape}, expected {expected.shape}"
        found = found.reshape(expected.shape)
        least = 1e-5 * max(1.0, float(np.abs(expected).max(initial=0)) / 10)
        wrong = ~np.isclose(found, expected, 1e-4, least, equal_nan=True)
        if not wrong.any():
            return "equal"
        return f"other scores: {found[wrong][:4]}, expected {expected[wrong][:4]}"


onnxruntime.InferenceSession = _Recorded
