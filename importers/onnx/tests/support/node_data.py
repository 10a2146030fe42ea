"""ONNX's own node tests: their names, models, inputs, expected outputs and tolerances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

NODES = Path(onnx.backend.test.__file__).parent / "data" / "node"
RTOL, ATOL = 1e-3, 1e-7


class Packed(NamedTuple):
    """An array as the runtime stores it: sub-byte elements packed."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def all_names() -> list[str]:
    """Return the names of all node tests, sorted."""
    return sorted(folder.name for folder in NODES.iterdir())


def arrays(name: str, kind: str) -> list[np.ndarray]:
    """Return the ``input``s or ``output``s of a test; a sequence or optional is refused.

    Raises
    ------
    ValueError
        One is not a tensor.
    """
    model = onnx.load(NODES / name / "model.onnx", load_external_data=False)
    infos = list(getattr(model.graph, kind))
    found = []
    for index, info in enumerate(infos):
        if not info.type.HasField("tensor_type"):
            raise ValueError(f"{info.name} is not a tensor")
        path = NODES / name / "test_data_set_0" / f"{kind}_{index}.pb"
        found.append(numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())))
    return found


def named_inputs(name: str) -> dict[str, np.ndarray]:
    """Return the inputs of a test by name."""
    model = onnx.load(NODES / name / "model.onnx", load_external_data=False)
    names = [info.name for info in model.graph.input]
    return dict(zip(names, arrays(name, "input"), strict=True))


def tolerances(name: str) -> tuple[float, float]:
    """Return rtol and atol of a test."""
    path = NODES / name / "data.json"
    facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return facts.get("rtol", RTOL), facts.get("atol", ATOL)


def packed(array: np.ndarray) -> Packed:
    """Return an array as the runtime stores it."""
    name = array.dtype.name
    proto = numpy_helper.from_array(np.ascontiguousarray(array))
    return Packed(name, array.shape, proto.raw_data)


def unpacked(stored: Packed) -> np.ndarray:
    """Return the array of stored bytes."""
    dtype = np.dtype(_dtype(stored.dtype))
    proto = onnx.TensorProto(
        data_type=onnx.helper.np_dtype_to_tensor_dtype(dtype),
        dims=stored.shape,
        raw_data=stored.data,
    )
    return numpy_helper.to_array(proto)


def _dtype(name: str) -> Any:
    import ml_dtypes

    return getattr(ml_dtypes, name, None) or name


def difference(name: str, results: list[np.ndarray]) -> str:
    """Compare results as ONNX's runner does; return ``""``, or what differs."""
    rtol, atol = tolerances(name)
    expected = arrays(name, "output")
    if len(results) != len(expected):
        return f"{len(results)} outputs, expected {len(expected)}"
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if result.dtype != wanted.dtype or result.shape != wanted.shape:
            found = f"{result.dtype}{result.shape}"
            return f"output {index}: expected {wanted.dtype}{wanted.shape}, found {found}"
        try:
            np.testing.assert_allclose(
                _plain(result), _plain(wanted), rtol=rtol, atol=atol, equal_nan=True
            )
        except AssertionError as error:
            lines = [
                line for line in str(error).splitlines() if "Mismatch" in line or "Max" in line
            ]
            return f"output {index}: {'; '.join(lines)}"
    return ""


def _plain(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "biufc" else array.astype(np.float32)
