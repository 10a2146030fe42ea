"""The safetensors file of a model: read by others, aligned, equal weights once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

import runtime
from dso_packer_onnx.lower.packing import (
    packed_conv2d,
    packed_lowp_conv2d,
    packed_lowp_matmul,
    packed_matmul,
)
from dso_packer_onnx.weights import Weights
from packer.operators import pack_conv2d, pack_lowp_conv2d, pack_lowp_matmul, pack_matmul
from runtime.serial.stream import Writer, read_chunk


def stored(name: str, array: np.ndarray) -> ir.Value:
    """A weight of any type."""
    tensor = ir.tensor(array, name=name)
    return ir.Value(
        name=name, shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor
    )


def read(weights: Weights) -> runtime.SafetensorsModule:
    """The module of the file."""
    return weights.module({"key": "value"})


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
    module, writer = read(weights), Writer()
    module.save_to_binary(writer)
    file = read_chunk(writer.finish()[-1])
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


MATRICES = [(3, 31), (7, 32), (64, 100), (2, 3, 8, 40), (1 << 18, 65), (40, 1 << 17), (0, 5)]
# outputs, channels per group, kernel, groups
CONVOLUTIONS = [
    *((1, 1, (1, 1), 1), (64, 3, (7, 7), 1), (33, 20, (1, 1), 1), (16, 1, (3, 3), 16)),
    *((40, 1, (5, 5), 40), (96, 8, (1, 1), 3), (70, 5, (2, 3), 7), (128, 32, (3, 3), 4)),
]


def assert_stored(value: ir.Value, expected: np.ndarray) -> None:
    """Compare the bytes that are written, and the type that is known before that."""
    weights = Weights()
    weights.add(value)
    found = read(weights).weights[str(value.name)]
    assert value.shape is not None
    assert (found.shape, str(found.dtype)) == (expected.shape, str(expected.dtype))
    assert tuple(value.shape) == expected.shape
    assert bytes(found.raw) == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bfloat16"])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("shape", MATRICES)
def test_a_matrix_that_is_packed_part_by_part_is_as_packed_at_once(
    shape: tuple[int, ...], is_transposed: bool, dtype: str
) -> None:
    """Of one part and of several ones; with batches, and with columns that fill no panel."""
    array = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
    factor = array.swapaxes(-1, -2) if is_transposed else array
    if dtype == "float32":
        value, expected = packed_matmul, pack_matmul(factor)
    else:
        value, expected = packed_lowp_matmul, pack_lowp_matmul(factor)
    assert_stored(value(stored("w", array), is_transposed=is_transposed), expected)


@pytest.mark.parametrize(("outputs", "channels", "kernel", "groups"), CONVOLUTIONS)
def test_a_kernel_that_is_packed_panel_by_panel_is_as_packed_at_once(
    outputs: int, channels: int, kernel: tuple[int, int], groups: int
) -> None:
    """Plain, grouped and depthwise ones, for both layouts of images, and 8-bit integers."""
    array = np.random.default_rng(1).integers(-99, 99, (outputs, channels, *kernel)).astype("f4")
    for block in (16, 1):
        expected = pack_conv2d(array, groups=groups, block=block)
        assert_stored(packed_conv2d(stored("w", array), groups=groups, block=block), expected)
    narrow = array.astype("i1")
    expected = pack_lowp_conv2d(narrow, groups=groups)
    assert_stored(packed_lowp_conv2d(stored("w", narrow), groups=groups), expected)
