"""dso_op_matmul beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from packer.operators import pack_matmul

from ..support.operators import ACTIVATIONS, Epilogue, Matmul, assert_close, matmul, pointer

# rows, inner, columns: each extent below, at and above the sizes of tiles, blocks and panels.
SHAPES = [
    *((rows, 33, 45) for rows in (*range(1, 17), 27, 28, 29, 65)),
    *((5, inner, 32) for inner in (1, 15, 16, 17, 32, 300)),
    *((6, 24, columns) for columns in (1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65)),
    (1, 1, 1),
    (128, 256, 96),
    (3, 2048, 40),
    (33, 500, 33),
    *((18, 40, columns) for columns in (1, 3, 4, 5, 16)),
    (35, 7, 2),
    (230, 200, 32),
]


def arrays(*shape_of_each: tuple[int, ...]) -> list[np.ndarray]:
    """Random floats; the same for the same shapes."""
    random = np.random.default_rng(sum(map(sum, shape_of_each)))
    return [random.normal(size=shape).astype(np.float32) for shape in shape_of_each]


def double(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in double precision."""
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "packed"])
def test_product_is_numpys(library, shape, is_packed) -> None:
    """Of any extents, with b as it is or packed."""
    rows, inner, columns = shape
    a, b = arrays((1, 1, rows, inner), (1, 1, inner, columns))
    packed = pack_matmul(b) if is_packed else None
    assert_close(matmul(library, a, b, packed=packed), double(a, b))


def half(random: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Elements of float16 or bfloat16, the first ones of every exponent, and as float32."""
    flat = random.reshape(-1)
    flat[:60] *= 2.0 ** np.arange(-30, 30).clip(-26, 12)[: flat.size]
    if name == "float16":
        return random.astype(np.float16), random.astype(np.float16).astype(np.float32)
    stored = (random.view(np.uint32) >> 16).astype(np.uint16)
    return stored, (stored.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 70, 45), (9, 1, 64), (40, 500, 33), (230, 200, 20)], ids=str)
def test_packed_halves_are_widened(library, shape, name) -> None:
    """Exactly: the sums are of the same floats. Small numbers of float16 have fewer digits."""
    rows, inner, columns = shape
    a, b = arrays((1, 2, rows, inner), (1, 2, inner, columns))
    stored, wide = half(b, name)
    found = matmul(library, a, wide, packed=pack_matmul(stored))
    assert_close(found, double(a, wide))


def test_endless_halves_are_endless(library) -> None:
    """Of a float16 that is infinite or not a number the sums are, too."""
    b = np.array([[np.inf, -np.inf, np.nan, 65504]], np.float16).reshape(1, 1, 1, 4)
    a = np.ones((1, 1, 1, 1), np.float32)
    found = matmul(library, a, b.astype(np.float32), packed=pack_matmul(b))
    np.testing.assert_array_equal(found, b.astype(np.float32))


@pytest.mark.parametrize("transposed", ["a", "b", "ab"])
@pytest.mark.parametrize("rows", [1, 9, 40])
def test_transposed_factors_are_read_by_their_strides(library, transposed, rows) -> None:
    """Gemm's transA and transB are only other strides."""
    a, b = arrays((1, 1, rows, 37), (1, 1, 37, 50))
    if "a" in transposed:
        a = np.ascontiguousarray(a.swapaxes(2, 3)).swapaxes(2, 3)
    if "b" in transposed:
        b = np.ascontiguousarray(b.swapaxes(2, 3)).swapaxes(2, 3)
    assert_close(matmul(library, a, b), double(a, b))


@pytest.mark.parametrize(
    ("a_batch", "b_batch"),
    [((2, 3), (2, 3)), ((2, 3), (1, 1)), ((1, 3), (2, 1)), ((1, 1), (4, 1)), ((7, 1), (7, 1))],
)
@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "packed"])
def test_batches_are_broadcast(library, a_batch, b_batch, is_packed) -> None:
    """A distance of 0 uses a factor again."""
    a, b = arrays((*a_batch, 20, 19), (*b_batch, 19, 35))
    packed = pack_matmul(b) if is_packed else None
    assert_close(matmul(library, a, b, packed=packed), double(a, b))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("columns", [32, 45])
@pytest.mark.parametrize("residual", ["none", "other", "in place"])
def test_epilogue_follows_the_sum(library, activation, columns, residual) -> None:
    """Bias, then the residual, then the activation; the residual may be the output."""
    a, b, bias, more = arrays((1, 2, 17, 21), (1, 2, 21, columns), (columns,), (1, 2, 17, columns))
    a *= 0.3  # about as many sums below as above the bounds of the activations
    out = more.copy() if residual == "in place" else None
    after = Epilogue(bias, {"none": None, "other": more, "in place": out}[residual], activation)
    expected = Epilogue(bias, None if residual == "none" else more, activation)
    assert_close(
        matmul(library, a, b, after, out=out), expected.expected(double(a, b), channel_axis=3)
    )


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_gelu_is_exact_over_its_whole_range(library, activation) -> None:
    """Where the exponential is 0 or would overflow, too."""
    x = np.concatenate([np.linspace(-200, 200, 4001), np.linspace(-6, 6, 4001)])
    a, b = x.astype(np.float32).reshape(1, 1, -1, 1), np.ones((1, 1, 1, 1), np.float32)
    expected = Epilogue(activation=activation).expected(a.astype(np.float64), 3)
    found = matmul(library, a, b, Epilogue(activation=activation))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-7)


def test_output_rows_may_be_apart(library) -> None:
    """Floats between the rows are not written."""
    a, b = arrays((1, 1, 30, 8), (1, 1, 8, 40))
    whole = np.full((1, 1, 30, 64), 7, np.float32)
    matmul(library, a, b, out=whole[..., :40])
    assert_close(whole[..., :40], double(a, b))
    assert (whole[..., 40:] == 7).all()


@pytest.mark.parametrize("columns", [1, 32, 33, 100])
def test_packed_layout_is_the_same_in_c_and_python(library, columns) -> None:
    """An export packs with NumPy, a program with the C function."""
    (b,) = arrays((29, columns))
    expected = pack_matmul(b)
    struct = Matmul(inner=29, columns=columns)
    library.size_matmul.restype = ctypes.c_int64
    assert library.size_matmul(ctypes.byref(struct)) == expected.size
    for source in (b, np.ascontiguousarray(b.T).T):
        packed = np.full_like(expected, np.nan)
        row, column = (ctypes.c_int64(stride // 4) for stride in source.strides)
        library.pack_matmul(ctypes.byref(struct), pointer(source), row, column, pointer(packed))
        assert packed.tobytes() == expected.tobytes()


def test_empty_product_writes_nothing(library) -> None:
    """No rows or no columns; and without inner elements the sum is 0."""
    for rows, inner, columns in ((0, 4, 4), (4, 4, 0), (4, 0, 4)):
        a, b = np.zeros((1, 1, rows, inner), np.float32), np.zeros((1, 1, inner, columns), "f4")
        assert (matmul(library, a, b) == 0).all()
