"""`runtime.tensors.unpack` is the inverse of the packers of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import packer.operators
import runtime
from runtime.tensors.unpack import unpack

MATRICES = [(1, 1), (3, 31), (7, 32), (5, 33), (64, 100), (0, 5), (2, 3, 8, 40), (4, 1, 65)]
# outputs, channels per group, kernel, groups
CONVOLUTIONS = [
    *((1, 1, (1, 1), 1), (64, 3, (7, 7), 1), (32, 16, (3, 3), 1), (33, 20, (1, 1), 1)),
    *((100, 64, (3, 1), 1), (16, 1, (3, 3), 16), (40, 1, (5, 5), 40), (24, 2, (3, 3), 4)),
    *((96, 8, (1, 1), 3), (70, 5, (2, 3), 7), (64, 1, (3, 3), 32), (128, 32, (3, 3), 4)),
    *((6, 40, (1, 1), 2), (2, 1, (1, 1), 2), (34, 17, (3, 3), 1), (90, 4, (1, 1), 45)),
]


def random(shape: tuple[int, ...]) -> Any:
    """Random numbers, none of which is zero."""
    return np.random.default_rng(len(shape)).uniform(1, 2, size=shape).astype("f4")


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("shape", MATRICES)
def test_matrices(shape: tuple[int, ...], is_transposed: bool) -> None:
    """With batches, and with columns that fill no panel."""
    weight = random(shape)
    stored = runtime.tensor(
        packer.operators.pack_matmul(weight.swapaxes(-1, -2) if is_transposed else weight)
    )
    form = {"kernel": "matmul", "shape": list(shape), "transposed": is_transposed}
    assert np.array_equal(unpack(stored, form).numpy(), weight)


@pytest.mark.parametrize("block", [16, 1])
@pytest.mark.parametrize(("outputs", "channels", "kernel", "groups"), CONVOLUTIONS)
def test_convolutions(
    outputs: int, channels: int, kernel: tuple[int, int], groups: int, block: int
) -> None:
    """Plain, grouped and depthwise ones, for both layouts of images."""
    weight = random((outputs, channels, *kernel))
    stored = packer.operators.pack_conv2d(weight, groups=groups, block=block)
    form = {"kernel": "conv2d", "shape": list(weight.shape), "groups": groups, "block": block}
    assert np.array_equal(unpack(runtime.tensor(stored), form).numpy(), weight)


def test_halves() -> None:
    """They keep their type."""
    matrix, window = (random(shape).astype("f2") for shape in ((20, 40), (33, 20, 3, 3)))
    form = {"kernel": "matmul", "shape": [20, 40], "dtype": "float16"}
    stored = runtime.tensor(packer.operators.pack_matmul(matrix))
    assert np.array_equal(unpack(stored, form).numpy(), matrix)
    form = {"kernel": "conv2d", "shape": [33, 20, 3, 3], "dtype": "float16"}
    stored = runtime.tensor(packer.operators.pack_conv2d(window))
    assert np.array_equal(unpack(stored, form).numpy(), window)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16"])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("shape", MATRICES)
def test_lowp_matrices(shape: tuple[int, ...], is_transposed: bool, dtype: str) -> None:
    """The data type is that of the weight."""
    stored = {"bfloat16": "uint16"}.get(dtype, dtype)
    weight = np.random.default_rng(3).integers(0, np.iinfo(stored).max, shape).astype(stored)
    packed = packer.operators.pack_lowp_matmul(weight.swapaxes(-1, -2) if is_transposed else weight)
    form = {"kernel": "lowp_matmul", "shape": list(shape), "transposed": is_transposed}
    found = unpack(runtime.tensor(packed), {**form, "dtype": dtype})
    assert (found.dtype, found.shape) == (dtype, shape)
    assert bytes(found.raw) == weight.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("outputs", "channels", "kernel", "groups"), CONVOLUTIONS)
def test_lowp_convolutions(
    outputs: int, channels: int, kernel: tuple[int, int], groups: int, dtype: str
) -> None:
    """Plain, grouped and depthwise ones."""
    shape = (outputs, channels, *kernel)
    weight = np.random.default_rng(4).integers(0, 128, shape).astype(dtype)
    stored = packer.operators.pack_lowp_conv2d(weight, groups=groups)
    form = {"kernel": "lowp_conv2d", "shape": list(shape), "groups": groups, "dtype": dtype}
    assert np.array_equal(unpack(runtime.tensor(stored), form).numpy(), weight)
