"""blas.c, lapack.c and lapack_values.c beside Numba's functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char, c_double, c_int, c_ssize_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from dso_packer_numba.blas import find_blas
from runtime.error import ExportError

from .both import compile_support, ours, theirs

BUNDLED = sorted(Path(scipy.__file__).parent.with_name("scipy.libs").glob("libscipy_openblas*.so"))
KINDS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
P, N, K = c_void_p, c_ssize_t, c_char


@pytest.fixture(scope="module", params=["bundled", "package"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ctypes.CDLL, bool]:
    """Our functions over SciPy's own library, which Numba calls, or with integers of 64 bits."""
    is_same = request.param == "bundled"
    found = find_blas(BUNDLED[0] if is_same else None, ("blas", "lapack"))
    assert f"-DNB_BLAS_INT=int{32 if is_same else 64}_t" in found.options
    options = (*found.options, str(found.path), f"-Wl,-rpath,{found.path.parent}")
    folder = tmp_path_factory.mktemp(request.param)
    files = ("blas.c", "lapack.c", "lapack_values.c")
    if is_same:  # its own dependencies have other names in the process
        ctypes.CDLL(str(found.path), mode=ctypes.RTLD_GLOBAL)
        options = (*found.options, "-Wl,--allow-shlib-undefined")
    return compile_support(folder, *files, options=options), is_same


def made(kind: str, *shape: int) -> Any:
    """Column-major numbers."""
    drawn = np.random.default_rng(sum(shape))
    numbers = drawn.standard_normal(shape)
    if kind in "cz":
        numbers = numbers + 1j * drawn.standard_normal(shape)
    return np.asfortranarray(numbers.astype(KINDS[kind]))


def real(kind: str) -> Any:
    """The type of the real part."""
    return np.float32 if kind in "sc" else np.float64


Made = tuple[list[Any], list[Any]]


def _gemm(kind: str) -> Made:
    one, zero, out = made(kind, 1) * 0 + 1, made(kind, 1) * 0, made(kind, 7, 6)
    a, b = made(kind, 5, 7), made(kind, 5, 6)
    return [b"T", b"N", 7, 6, 5, one, a, 5, b, 5, zero, out, 7], [out]


def _gemv(kind: str) -> Made:
    one, out = made(kind, 1) * 0 + 1, made(kind, 7)
    return [b"N", 7, 5, one, made(kind, 7, 5), 7, made(kind, 5), one, out], [out]


def _dot(kind: str) -> Made:
    out = made(kind, 1)
    return [b"\1", 9, made(kind, 9), made(kind, 9)[::1] + 1, out], [out]


def _nrm2(kind: str) -> Made:
    out = np.zeros(1, real(kind))
    return [9, made(kind, 9), 1, out], [out]


def _getrf(kind: str) -> Made:
    a, pivots = made(kind, 6, 4), np.zeros(4, np.int32)
    return [6, 4, a, 6, pivots], [a, pivots]


def _getri(kind: str) -> Made:
    a = made(kind, 4, 4)
    return [4, a, 4, np.array([3, 2, 4, 4], np.int32)], [a]


def _potrf(kind: str) -> Made:
    a = made(kind, 4, 4)
    a = np.asfortranarray(a @ a.conj().T + 5 * np.eye(4, dtype=a.dtype))
    return [b"L", 4, a, 4], [a]


def _potrf_not_positive(kind: str) -> Made:
    a = np.asfortranarray(-np.eye(4, dtype=KINDS[kind]))
    return [b"L", 4, a, 4], [a]


def _gesv(kind: str) -> Made:
    a, b, pivots = made(kind, 5, 5), made(kind, 5, 2), np.zeros(5, np.int32)
    return [5, 2, a, 5, pivots, b, 5], [a, b, pivots]


def _geqrf(kind: str) -> Made:
    a, tau = made(kind, 40, 30), made(kind, 30)
    return [40, 30, a, 40, tau], [a, tau]


def _gqr(kind: str) -> Made:
    a = made(kind, 6, 4)
    return [6, 4, 4, a, 6, made(kind, 4)], [a]


def _rgeev(kind: str) -> Made:
    a, wr, wi, vr = made(kind, 6, 6), made(kind, 6), made(kind, 6), made(kind, 6, 6)
    return [b"N", b"V", 6, a, 6, wr, wi, made(kind, 1), 1, vr, 6], [wr, wi, vr]


def _cgeev(kind: str) -> Made:
    a, w, vr = made(kind, 6, 6), made(kind, 6), made(kind, 6, 6)
    return [b"N", b"V", 6, a, 6, w, made(kind, 1), 1, vr, 6], [w, vr]


def _evd(kind: str) -> Made:
    a, w = made(kind, 6, 6), np.zeros(6, real(kind))
    return [b"V", b"L", 6, a, 6, w], [a, w]


def _gesdd(kind: str) -> Made:
    a, s, u, v = made(kind, 7, 4), np.zeros(4, real(kind)), made(kind, 7, 7), made(kind, 4, 4)
    return [b"A", 7, 4, a, 7, s, u, 7, v, 4], [s, u, v]


def _gelsd(kind: str) -> Made:
    b, s, rank = made(kind, 8, 2), np.zeros(5, real(kind)), np.zeros(1, np.int64)
    return [8, 5, 2, made(kind, 8, 5), 8, b, 8, s, 1e-6, rank], [b, s, rank]


CASES: list[tuple[str, tuple[Any, ...], str, Callable[[str], Made]]] = [
    ("xxgemm", (K, K, N, N, N, P, P, N, P, N, P, P, N), "sdcz", _gemm),
    ("xxgemv", (K, N, N, P, P, N, P, P, P), "sdcz", _gemv),
    ("xxdot", (K, N, P, P, P), "sdcz", _dot),
    ("xxnrm2", (N, P, N, P), "sdcz", _nrm2),
    ("xxgetrf", (N, N, P, N, P), "sdcz", _getrf),
    ("ez_xxgetri", (N, P, N, P), "sdcz", _getri),
    ("xxpotrf", (K, N, P, N), "sdcz", _potrf),
    ("xxpotrf", (K, N, P, N), "dz", _potrf_not_positive),
    ("xgesv", (N, N, P, N, P, P, N), "sdcz", _gesv),
    ("ez_geqrf", (N, N, P, N, P), "sdcz", _geqrf),
    ("ez_xxgqr", (N, N, N, P, N, P), "sdcz", _gqr),
    ("ez_rgeev", (K, K, N, P, N, P, P, P, N, P, N), "sd", _rgeev),
    ("ez_cgeev", (K, K, N, P, N, P, P, N, P, N), "cz", _cgeev),
    ("ez_xxxevd", (K, K, N, P, N, P), "sdcz", _evd),
    ("ez_gesdd", (K, N, N, P, N, P, P, N, P, N), "sdcz", _gesdd),
    ("ez_gelsd", (N, N, N, P, N, P, N, P, c_double, P), "sdcz", _gelsd),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[3].__name__)
def test_every_kind_gives_the_result_of_numba(
    library: tuple[ctypes.CDLL, bool], case: tuple[Any, ...]
) -> None:
    """The same bits with the library that Numba itself calls; close with another version."""
    name, types, kinds, make = case
    own, is_same = library
    for kind in kinds:
        results = []
        for find in (lambda *a: ours(own, *a), theirs):
            arguments, out = make(kind)
            passed = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
            status = find(f"numba_{name}", c_int, c_char, *types)(kind.encode(), *passed)
            results.append((status, out))
        assert results[0][0] == results[1][0]
        for mine, other in zip(results[0][1], results[1][1], strict=True):
            if is_same:
                assert mine.tobytes(order="A") == other.tobytes(order="A"), kind
            else:
                if make in (_rgeev, _cgeev, _evd, _gesdd):  # vectors may have another sign
                    mine, other = np.abs(mine), np.abs(other)
                np.testing.assert_allclose(mine, other, rtol=2e-4, atol=2e-4)


def test_invalid_arguments_fail(library: tuple[ctypes.CDLL, bool]) -> None:
    """An unknown kind: compiled code then ends the process."""
    function = ours(library[0], "numba_xxpotrf", c_int, c_char, K, N, P, N)
    assert function(b"x", b"L", 1, made("d", 1, 1).ctypes.data, 1) == -1


def test_libraries_without_blas_are_refused() -> None:
    """In words; a library that is not an ELF file, too."""
    libm = next(Path("/").glob("lib*/x86_64-linux-gnu/libm.so.6"), None)
    if libm is not None:
        with pytest.raises(
            ExportError, match=r"expected the symbols dgemm_, as Fortran names them"
        ):
            find_blas(libm)
