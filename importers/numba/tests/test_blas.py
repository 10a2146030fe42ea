"""Functions that call BLAS and LAPACK: with a library, with another, and without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy

import packer
import runtime
from runtime.error import ExportError
from tests.support.command_line import COMMAND

BUNDLED = sorted(Path(scipy.__file__).parent.with_name("scipy.libs").glob("libscipy_openblas*.so"))


@numba.njit
def product(a, b):  # type: ignore[no-untyped-def]
    """By BLAS."""
    return np.dot(a, b)


@numba.njit
def solve(a, b):  # type: ignore[no-untyped-def]
    """By LAPACK; pivots are integers of Numba's width."""
    return np.linalg.solve(a, b)


@numba.njit
def spectrum(a):  # type: ignore[no-untyped-def]
    """By LAPACK, with workspaces."""
    return np.linalg.svd(a)[1]


FUNCTIONS = {"product": product, "solve": solve, "spectrum": spectrum}
SIGNATURES = {
    "product": ["f8[:,::1](f8[:,::1], f8[:,::1])", "c8[:,::1](c8[:,::1], c8[:,::1])"],
    "solve": "f8[:](f8[:,::1], f8[::1])",
    "spectrum": "f8[:](f8[:,::1])",
}
DRAWN = np.random.default_rng(1)
MATRIX, VECTOR = DRAWN.random((6, 6)), DRAWN.random(6)
COMPLEX = (MATRIX + 1j * MATRIX.T).astype(np.complex64)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library over the package scipy-openblas64."""
    module = packer.NumbaModule(FUNCTIONS, signatures=SIGNATURES)
    return packer.export_library(module, tmp_path_factory.mktemp("blas") / "linear.so")


def test_results_are_those_of_numba(library: Path) -> None:
    """Up to the rounding of another version of the library."""
    made = runtime.load(library)
    close = {"rtol": 1e-5, "atol": 1e-12}
    np.testing.assert_allclose(made["product"](MATRIX, MATRIX), product(MATRIX, MATRIX), **close)
    np.testing.assert_allclose(
        made["product"](COMPLEX, COMPLEX), product(COMPLEX, COMPLEX), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(made["solve"](MATRIX, VECTOR), solve(MATRIX, VECTOR), **close)
    np.testing.assert_allclose(made["spectrum"](MATRIX), spectrum(MATRIX), **close)
    with pytest.raises(Exception, match="Matrix is singular") as caught:
        made["solve"](np.zeros((6, 6)), VECTOR)
    assert "LinAlgError" in str(caught.value) or isinstance(caught.value, ValueError)


def test_the_library_names_what_it_needs(library: Path) -> None:
    """A linker of other programs finds it, too."""
    listed = subprocess.run(
        ["readelf", "-dW", str(library)], check=True, capture_output=True, text=True
    ).stdout
    assert "libscipy_openblas64_.so" in listed
    assert "scipy_openblas64/lib" in listed


def test_a_named_library_is_used(tmp_path: Path) -> None:
    """With integers of 32 bits, and the functions of Numba's own: the same bits."""
    module = packer.from_numba(product, "f8[:,::1](f8[:,::1], f8[:,::1])", blas=BUNDLED[0])
    path = packer.export_library(module, tmp_path / "named.so")
    code = (
        "import sys, scipy.linalg, numpy, runtime; a = numpy.arange(36.0).reshape(6, 6) / 7;"
        "print(numpy.asarray(runtime.load(sys.argv[1])['product'](a, a)).tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    a = np.arange(36.0).reshape(6, 6) / 7
    assert done.stdout.strip() == product(a, a).tobytes().hex()


def test_a_project_names_the_library(tmp_path: Path) -> None:
    """The path is relative to packer.toml; a link is followed to the file that a load finds."""
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "libown_blas.so").symlink_to(BUNDLED[0])
    (tmp_path / "linear.py").write_text(
        "import numpy as np\nfrom numba import njit\n\n\n"
        "@njit\ndef product(a, b):\n    return np.dot(a, b)\n"
    )
    (tmp_path / "packer.toml").write_text(
        "[library]\noutput = 'linear.so'\n[module.linear]\nkind = 'numba'\n"
        "sources = ['linear.py']\nblas = 'libraries/libown_blas.so'\n"
        f"functions = {{ product = '{SIGNATURES['product'][0]}' }}\n"
    )
    words = [*COMMAND, "export", "--project", str(tmp_path / "packer.toml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "linear.so"
    listed = subprocess.run(
        ["readelf", "-dW", str(path)], check=True, capture_output=True, text=True
    ).stdout
    assert str(BUNDLED[0].parent) in listed
    made = runtime.load(path)["product"](MATRIX, MATRIX)
    np.testing.assert_allclose(made, MATRIX @ MATRIX, rtol=1e-12)


def test_a_project_that_names_a_missing_library_is_refused(tmp_path: Path) -> None:
    """With its path."""
    (tmp_path / "linear.py").write_text("")
    (tmp_path / "packer.toml").write_text(
        "[library]\noutput = 'linear.so'\n[module.linear]\nkind = 'numba'\n"
        "sources = ['linear.py']\nblas = 'absent.so'\n"
    )
    words = [*COMMAND, "export", "--project", str(tmp_path / "packer.toml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "absent.so" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_blas_is_refused(tmp_path: Path) -> None:
    """Also one that does not exist, or that is not a library: at export, in words."""
    signature = SIGNATURES["product"][0]
    with pytest.raises(ExportError, match="there is no such file"):
        packer.from_numba(product, signature, blas=tmp_path / "absent.so")
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(runtime.PackerError, match=r"text\.so"):
        packer.from_numba(product, signature, blas=text)
    (tmp_path / "empty.c").write_text("int unrelated(void) { return 1; }")
    empty = tmp_path / "empty.so"
    subprocess.run(["cc", "-shared", str(tmp_path / "empty.c"), "-o", str(empty)], check=True)
    with pytest.raises(ExportError, match=r"empty\.so: library of BLAS: expected the symbols"):
        packer.from_numba(product, signature, blas=empty)


def test_a_library_that_a_load_would_not_find_is_refused(tmp_path: Path) -> None:
    """A load looks for the name that the library has itself."""
    copied = tmp_path / "renamed.so"
    copied.write_bytes(BUNDLED[0].read_bytes())
    message = rf"renamed\.so: library of BLAS: its own name is '{BUNDLED[0].name}', expected a file"
    with pytest.raises(ExportError, match=message):
        packer.from_numba(product, SIGNATURES["product"][0], blas=copied)


def test_without_a_library_the_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its line and what to install; the other functions of the code do not need it."""
    monkeypatch.setitem(sys.modules, "scipy_openblas64", None)
    line = product.py_func.__code__.co_firstlineno + 3
    with pytest.raises(ExportError, match=rf"test_blas\.py:{line}: .*pip install scipy-openblas64"):
        packer.from_numba(product, SIGNATURES["product"][0])
