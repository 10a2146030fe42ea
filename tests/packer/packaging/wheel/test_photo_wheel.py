"""The wheel of examples/photo where packer is not installed, on three versions of CPython."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import packer

from ....support.paths import EXAMPLES, ROOT
from .debian_python import Suite
from .installation import fresh_environment, install, run, runtime_wheel

PHOTO = EXAMPLES / "photo"
# Debian 12 has 3.11; the releases after it have others.
SUITES = ("trixie", "forky")
USE = """
import sys

import numpy as np
import photo

pixels = np.load(sys.argv[1])
height, width, _ = pixels.shape
colours = photo.colours()
gray = np.empty((height, width), np.float32)
responses = np.empty((len(colours), height, width), np.float32)
edges = np.empty((height, width, 3), np.float32)
photo.gray(pixels, gray, gray.size)
photo.convolve(gray, responses, height, width)
photo.paint(responses, colours, edges, gray.size)
photo.gamma(edges, edges.size, 0.7)
np.savez(sys.argv[2], gray=gray, edges=edges, colours=colours)
absent = not {"packer", "llvmlite"} & sys.modules.keys()
print(*sys.version_info[:2], photo.model.type_key, absent)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The library of the example in a wheel, with the loader of its module type."""
    folder = tmp_path_factory.mktemp("photo")
    shutil.copytree(PHOTO, folder / "photo", ignore=shutil.ignore_patterns("out", "__pycache__"))
    library = folder / "photo" / "photo.so"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run(sys.executable, "-m", "packer", "export", library, cwd=folder / "photo", PATH=path)
    return packer.write_wheel(
        library, folder, name="photo", version="1.0", requires=["numpy"],
        include=[PHOTO / "palette.py"], loaders={"photo.palette": "photo.palette:load"},
    )  # fmt: skip


def check_photo(python: Path, wheel: Path, runtime_folder: Path, folder: Path) -> str:
    """Install the wheel as pip does, process an image, and compare with NumPy's."""
    install(python, "--find-links", runtime_folder, wheel)
    pixels = np.random.default_rng(1).integers(0, 256, (24, 31, 3), np.uint8)
    np.save(folder / "pixels.npy", pixels)
    result = folder / "result.npz"
    said = run(python, "-c", USE, folder / "pixels.npy", result)
    found = np.load(result)
    develop = runpy.run_path(str(PHOTO / "reference.py"))["develop"]
    filters = np.load(PHOTO / "filters.npy")
    gray, edges = develop(pixels, filters, found["colours"], 0.7)
    assert np.abs(found["gray"] - gray).max() < 1e-4
    assert np.abs(found["edges"] - edges).max() < 1e-4
    return said


def test_photo_on_this_python(wheel, tmp_path) -> None:
    """In a fresh environment with what the wheel requires."""
    runtime_wheel(tmp_path)
    python = fresh_environment(tmp_path / "venv")
    version = f"{sys.version_info.major} {sys.version_info.minor}"
    said = check_photo(python, wheel, tmp_path, tmp_path)
    assert said == f"{version} photo.palette True\n"


@pytest.mark.parametrize("suite", SUITES)
def test_photo_on_another_python(wheel, tmp_path, suite) -> None:
    """The same wheel; the runtime is compiled for each version."""
    debian = Suite(suite)
    python = fresh_environment(tmp_path / "venv", debian.python())
    install(python, "setuptools>=77")
    ignored = shutil.ignore_patterns("build", "__pycache__", "*.egg-info", "*.so*")
    shutil.copytree(ROOT / "runtime", tmp_path / "runtime", ignore=ignored)
    made = tmp_path / "made"
    pip = [sys.executable, "-m", "pip", "--python", python, "wheel", "--no-build-isolation"]
    flags = f"-I{debian.include()}"
    run(*pip, "--no-deps", "-w", made, tmp_path / "runtime", CPPFLAGS=flags)
    said = check_photo(python, wheel, made, tmp_path)
    assert said.startswith("3 ")
    assert said.endswith(" photo.palette True\n")
    assert said.split()[1] != "11"
