"""examples/rust: the crate builds without a network, and runs a model."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import packer
import runtime

from .support import needs
from .support.paths import EXAMPLES

PRINTED = """\
add: 42
scale: [0.5, 1.0, 1.5, 2.0]
layer.weight: [2, 3] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
FunctionNotFoundError
"""


@pytest.fixture(scope="module")
def crate(tmp_path_factory) -> Path:
    """A copy of the crate, with the model that its README makes."""
    needs.program("cargo", "rustc")
    folder = tmp_path_factory.mktemp("crate") / "rust"
    shutil.copytree(EXAMPLES / "rust", folder, ignore=shutil.ignore_patterns("target"))
    weights = {"layer.weight": np.arange(6, dtype="float32").reshape(2, 3)}
    save_file(weights, folder / "weights.safetensors")
    module = packer.CSourceModule(folder / "model.c", functions="auto")
    module.import_module(runtime.SafetensorsModule(folder / "weights.safetensors"))
    packer.export_library(module, folder / "model.so")
    return folder


def run_example(crate: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Build offline, with the tested packer on PATH and warnings as errors, and run."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RUSTFLAGS": "-D warnings",
        "CARGO_TARGET_DIR": str(crate / "target"),
    }
    environment.pop("PYTHONSAFEPATH", None)
    environment.pop("DSO_LIBDIR", None)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=crate, env=environment, capture_output=True, text=True, check=False
        )

    built = run("cargo", "build", "--offline")
    assert built.returncode == 0, built.stderr
    return run("target/debug/dso", *arguments)


def test_example_prints_the_results_of_a_model(crate) -> None:
    """Integers, a tensor that a function changes, a weight, an error."""
    ran = run_example(crate, "model.so")
    assert (ran.returncode, ran.stdout) == (0, PRINTED), ran.stderr


def test_wrong_paths_are_errors(crate) -> None:
    """The result of main shows the error."""
    ran = run_example(crate, "none.so")
    assert ran.returncode == 1
    assert "LibraryLoadError" in ran.stderr


def test_only_trusted_bytes_run(crate) -> None:
    """The closure gets them; its text is the error."""
    shutil.copy(crate / "model.so", crate / "copy.so")
    ran = run_example(crate, "model.so", "copy.so")
    assert (ran.returncode, ran.stdout) == (0, PRINTED), ran.stderr
    ran = run_example(crate, "model.so", "model.c")
    assert ran.returncode == 1
    assert "model.so: differs from the trusted copy" in ran.stderr
