"""The safetensors file of a model: read by others, aligned, equal weights once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

import runtime
from packer.importers.onnx.weights import Weights


def stored(name: str, array: np.ndarray) -> ir.Value:
    """A weight of any type."""
    tensor = ir.tensor(array, name=name)
    return ir.Value(
        name=name, shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor
    )


def read(weights: Weights) -> runtime.SafetensorsModule:
    """The module of the file."""
    return runtime.SafetensorsModule(weights.file({"key": "value"}))


def test_the_file_has_each_array_with_its_values() -> None:
    """Of every type that the format has; metadata as well."""
    arrays = {
        "f32": np.arange(6, dtype="f4").reshape(2, 3),
        "i64": np.arange(3),
        "bool": np.array([True, False]),
        "scalar": np.float64(2.5),
        "f16": np.ones((2, 1), "f2"),
        "bf16": np.array([1.5], ml_dtypes.bfloat16),
        "empty": np.ones((0, 3), "f4"),
        "naïve name": np.ones(1, "i1"),
    }
    weights = Weights()
    for name, array in arrays.items():
        weights.add(stored(name, np.asarray(array)))
    module = read(weights)
    assert module.metadata == {"key": "value"}
    assert set(module.weights) == set(arrays)
    for name, array in arrays.items():
        found = module.weights[name]
        assert found.shape == np.asarray(array).shape
        assert str(found.dtype) == str(np.asarray(array).dtype)
        assert bytes(found.raw) == np.asarray(array).tobytes()


def test_arrays_whose_size_is_a_multiple_of_64_begin_at_one() -> None:
    """And every array at a multiple of its element's size, whatever the order."""
    sizes = [1, 16, 3, 32, 1000, 7, 64, 5]
    weights = Weights()
    for i, size in enumerate(sizes):
        weights.add(stored(f"w{i}", np.full(size, i, np.float32)))
    weights.add(stored("flags", np.ones(3, bool)))
    file = weights.file({})
    begin = 8 + int.from_bytes(file[:8], "little")
    assert begin % 64 == 0
    for i, size in enumerate(sizes):
        at = file.index(np.full(size, i, np.float32).tobytes(), begin) if i else 0
        assert at % (64 if 4 * size % 64 == 0 else 4) == 0


def test_equal_arrays_are_stored_once_and_equal_names_twice() -> None:
    """Equal bytes of another shape or type are another weight."""
    ones = np.ones(4, np.float32)
    first, equal, other = stored("a", ones), stored("b", ones.copy()), stored("a", 2 * ones)
    shape, dtype = stored("c", ones.reshape(2, 2)), stored("d", ones.view(np.int32))
    weights = Weights()
    for value in (first, equal, other, shape, dtype, first):
        weights.add(value)
    names = [weights.names[value] for value in (first, equal, other, shape, dtype)]
    assert names == ["a", "a", "a#2", "c", "d"]
    assert weights.equal == {"b": "a"}
    assert list(read(weights).weights) == ["a", "a#2", "c", "d"]


@pytest.mark.parametrize("dtype", [ir.DataType.INT4, ir.DataType.UINT4])
def test_types_that_the_format_lacks_are_bytes(dtype: ir.DataType) -> None:
    """Two elements of 4 bits in a byte, the first in the lower half."""
    tensor = ir.tensor(np.array([1, 2, 3]).astype(dtype.numpy()), name="w", dtype=dtype)
    weights = Weights()
    weights.add(
        ir.Value(name="w", shape=tensor.shape, type=ir.TensorType(dtype), const_value=tensor)
    )
    assert bytes(read(weights).weights["w"].raw) == b"\x21\x03"
