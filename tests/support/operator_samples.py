"""Calls of every operator with odd extents, for checkers that watch memory."""

from __future__ import annotations

import ctypes

import numpy as np

from packer.operators import pack_lowp_matmul, pack_matmul

from .attention import attend
from .images import Memory, Window, conv2d, reorder
from .lowp import Result, lowp_conv2d, lowp_matmul
from .normalization import KINDS, normalize
from .operators import Epilogue, assert_close, matmul
from .pooling import pool
from .recurrent import GATES, Layer, recurrent
from .resize import MODES, resize


def floats(*shape: int) -> np.ndarray:
    """Return random floats."""
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def run_samples(library: ctypes.CDLL) -> None:
    """Call every operator; most results are compared elsewhere."""
    for rows, inner, columns in ((1, 5, 7), (3, 33, 40), (29, 17, 32), (43, 48, 65)):
        a, b = floats(1, 2, rows, inner), floats(1, 1, inner, columns)
        after = Epilogue(floats(columns), floats(1, 2, rows, columns), "gelu")
        assert_close(
            matmul(library, a, b, after), matmul(library, a, b, after, packed=pack_matmul(b))
        )
        matmul(library, floats(1, 2, inner, rows).swapaxes(2, 3), b)
    strided = Window(stride=(2, 2))
    for channels, outputs, window in (
        *((3, 20, Window()), (37, 50, strided), (32, 33, Window((1, 1), pads=(0, 0, 0, 0)))),
        *((30, 50, Window(groups=5)), (40, 40, Window(groups=40)), (24, 24, Window(groups=24))),
    ):
        images, weight = (
            floats(2, channels, 9, 17),
            floats(outputs, channels // window.groups, *window.kernel),
        )
        bias = floats(outputs)
        for block, padding in ((16, 0), (16, 1), (1, 0), (1, 1)):
            source = Memory.of(images, block, padding)
            out = conv2d(
                library, window, source, weight, Epilogue(bias), block=block, padding=padding
            )
            conv2d(
                library, window, source, weight, Epilogue(bias, out), block=block, padding=padding
            )
    for kind in KINDS:
        for size in (1, 15, 33, 2100):
            normalize(library, floats(3, size), kind, floats(size), floats(size))
    for channels, window in ((3, strided), (33, Window((2, 3), (1, 2), pads=(1, 0, 0, 2)))):
        for block, padding in ((16, 0), (16, 1), (1, 0), (1, 1)):
            source = Memory.of(floats(2, channels, 9, 17), block, padding)
            for is_average in (False, True):
                pool(library, window, source, is_average=is_average, padding=padding)
            reorder(library, source, 17 - block, 1)
            for mode in MODES:
                for height, width in ((5, 50), (18, 9)):
                    resize(library, source, height, width, mode, padding)
    for rows, keys, size, value_size in ((1, 1, 1, 1), (17, 33, 20, 64), (5, 600, 16, 33)):
        q, k = floats(1, 2, rows, size), floats(1, 2, keys, size)
        mask = floats(1, 1, rows, keys)
        attend(library, q, k, floats(1, 2, keys, value_size), mask, is_causal=True)
    for kind in GATES:
        for batch, hidden in ((1, 37), (17, 20)):
            lengths = np.arange(batch, dtype=np.int32) % 4
            recurrent(library, Layer(kind, 2, 3, batch, hidden, has_states=True, lengths=lengths))
    run_lowp_samples(library)


def run_lowp_samples(library: ctypes.CDLL) -> None:
    """Call the operators of 8-bit integers and of bfloat16; integers are compared exactly."""
    random = np.random.default_rng(2)
    for rows, inner, columns in ((1, 5, 7), (3, 33, 40), (29, 17, 32), (43, 90, 65)):
        a = random.integers(0, 256, (1, 2, rows, inner)).astype(np.uint8)
        b = random.integers(-128, 128, (1, 1, inner, columns)).astype(np.int8)
        zeros = (9, random.integers(-128, 128, columns).astype(np.int8))
        exact = (a.astype(np.int64) - 9) @ (b.astype(np.int64) - zeros[1])
        for packed in (None, pack_lowp_matmul(b)):
            found = lowp_matmul(library, a, b, Result(), zeros=zeros, packed=packed)
            assert np.array_equal(found, exact)
            for dtype in ("uint8", "float32"):
                result = Result(dtype, None, floats(columns), 3)
                lowp_matmul(library, a, b, result, packed=packed)
        halves = random.integers(0, 1 << 14, (1, 2, rows, inner)).astype(np.uint16)
        weights = random.integers(0, 1 << 14, (1, 1, inner, columns)).astype(np.uint16)
        lowp_matmul(library, halves, weights, Result("uint16"))
    for channels, outputs, window in (
        *((3, 20, Window()), (37, 50, Window(stride=(2, 2)))),
        *((30, 50, Window(groups=5)), (40, 40, Window(groups=40))),
    ):
        shape = (outputs, channels // window.groups, *window.kernel)
        images = random.integers(-128, 128, (2, channels, 9, 17)).astype(np.int8)
        weight = random.integers(0, 256, shape).astype(np.uint8)
        result = Result("int8", None, floats(outputs), 3)
        for block in (1, 32) if window.groups in (1, 40) else (1,):
            lowp_conv2d(
                library, window, images, weight, result, zeros=(5, 9), blocks=(block, block)
            )
