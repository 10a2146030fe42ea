"""ONNX's own node tests: their names, models, inputs, expected outputs and tolerances."""

from __future__ import annotations

import base64
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


def arrays(name: str, kind: str) -> list[Any]:
    """Return the ``input``s or ``output``s of a test: an array, a list of arrays, or None."""
    model = onnx.load(NODES / name / "model.onnx", load_external_data=False)
    infos = list(getattr(model.graph, kind))
    found = []
    for index, info in enumerate(infos):
        data = (NODES / name / "test_data_set_0" / f"{kind}_{index}.pb").read_bytes()
        form = info.type.WhichOneof("value")
        if form == "optional_type":
            optional = onnx.OptionalProto.FromString(data)
            found.append(numpy_helper.to_optional(optional))
        elif form == "sequence_type":
            found.append(numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
        else:
            found.append(numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    return found


def named_inputs(name: str) -> dict[str, Any]:
    """Return the inputs of a test by name."""
    model = onnx.load(NODES / name / "model.onnx", load_external_data=False)
    names = [info.name for info in model.graph.input]
    return dict(zip(names, arrays(name, "input"), strict=True))


def tolerances(name: str) -> tuple[float, float]:
    """Return rtol and atol of a test."""
    path = NODES / name / "data.json"
    facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return facts.get("rtol", RTOL), facts.get("atol", ATOL)


def packed_all(value: Any) -> Any:
    """Return an array, a list of arrays or None in a form of JSON."""
    if value is None or isinstance(value, list):
        return value and [packed_all(one) for one in value]
    stored = packed(value)._asdict()
    return stored | {"data": base64.b64encode(stored["data"]).decode()}


def unpacked_all(value: Any) -> Any:
    """Return what `packed_all` had."""
    if value is None or isinstance(value, list):
        return value and [unpacked_all(one) for one in value]
    data = base64.b64decode(value["data"])
    return unpacked(Packed(value["dtype"], tuple(value["shape"]), data))


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


def difference(name: str, results: list[Any]) -> str:
    """Compare results as ONNX's runner does; return ``""``, or what differs."""
    rtol, atol = tolerances(name)
    expected = arrays(name, "output")
    if len(results) != len(expected):
        return f"{len(results)} outputs, expected {len(expected)}"
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        pairs = [(result, wanted)]
        if not isinstance(wanted, np.ndarray):
            if (result is None) != (wanted is None) or len(result or ()) != len(wanted or ()):
                return f"output {index}: expected {wanted}, found {result}"
            pairs = [*zip(result or (), wanted or (), strict=True)]
        for one, other in pairs:
            why = _difference(one, other, rtol, atol)
            if why:
                return f"output {index}: {why}"
    return ""


def _difference(result: np.ndarray, wanted: np.ndarray, rtol: float, atol: float) -> str:
    """Return why two arrays differ, or ``""``."""
    if result.dtype != wanted.dtype or result.shape != wanted.shape:
        return f"expected {wanted.dtype}{wanted.shape}, found {result.dtype}{result.shape}"
    try:
        np.testing.assert_allclose(
            _plain(result), _plain(wanted), rtol=rtol, atol=atol, equal_nan=True
        )
    except AssertionError as error:
        return "; ".join(
            line for line in str(error).splitlines() if "Mismatch" in line or "Max" in line
        )
    return ""


def _plain(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "biufc" else array.astype(np.float32)
