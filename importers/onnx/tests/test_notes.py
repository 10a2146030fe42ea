"""Notes about the speed of a model: an export from Python has the notes of the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
from packer.target import native_triple

from .small_models import model, node, ones, unknown, value, weight

is_x86 = pytest.mark.skipif(
    not native_triple().startswith("x86_64"), reason="levels of x86-64 are named"
)
LEVELS = ["x86-64-v1", "x86-64-v3", "x86-64-v4"]


def network() -> Any:
    """A product, an LSTM with an activation of RNN and an operator that moves elements."""
    activations = ["Sigmoid", "Tanh", "Relu"]
    nodes = [
        node("MatMul", "x factor", "rows"),
        node("LSTM", "rows w r", "y0 h c", hidden_size=8, activations=activations),
        node("TopK", "h count", "most places", axis=-1),
    ]
    weights = [ones("factor", 64, 64), ones("w", 1, 32, 64), ones("r", 1, 32, 8)]
    weights.append(weight("count", np.array([2])))
    return model(nodes, [value("x", 5, 1, 64)], [unknown("most")], weights)


def test_python_says_what_the_command_line_says(tmp_path: Path, capfd) -> None:
    """On stderr, or to the progress."""
    (tmp_path / "m.onnx").write_bytes(network().SerializeToString())
    command = [sys.executable, "-m", "packer", "export", tmp_path / "a.so"]
    command += ["--onnx", tmp_path / "m.onnx"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if line.startswith("packer: note: ")]
    packer.export_library(packer.from_onnx(network()), tmp_path / "b.so")
    assert capfd.readouterr().err.splitlines() == said
    assert any("plain loops" in line for line in said)


@is_x86
def test_models_have_levels_that_strict_policies_accept(tmp_path: Path, capfd) -> None:
    """Unless `cpu` names others, or an option can compile for one only."""
    made = packer.from_onnx(network())
    path = packer.export_library(made, tmp_path / "a.so")
    assert [*packer.inspect_library(path).cpu.levels] == LEVELS
    strict = [sys.executable, "-m", "packer", "check", "--policy", "strict", path]
    assert subprocess.run(strict, capture_output=True).returncode == 0
    packer.export_library(made, path, build=packer.Build(cpu="x86-64-v3"))
    assert [*packer.inspect_library(path).cpu.levels] == ["x86-64-v3"]
    assert "CPU level" not in capfd.readouterr().err
    packer.export_library(packer.from_onnx(network(), options=["-march=x86-64-v2"]), path)
    assert packer.inspect_library(path).cpu is None
    assert "has option '-march=x86-64-v2'" in capfd.readouterr().err


def test_operators_in_plain_loops_are_listed_with_their_share(tmp_path: Path, capfd) -> None:
    """Of the estimated time: an operation of plain loops takes as long as 40 of a kernel."""
    packer.export_library(packer.from_onnx(network()), tmp_path / "a.so")
    (line,) = (line for line in capfd.readouterr().err.splitlines() if "plain loops" in line)
    assert line.startswith("packer: note: 1 of 3 operators run in plain loops, 95% of the ")
    assert line.endswith("estimated time: LSTM ('node_1') 95%")


def test_a_model_of_our_kernels_alone_lists_none(tmp_path: Path, capfd) -> None:
    """Views run nothing."""
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "y")]
    proto = model(nodes, [value("x", 2, 32)], [unknown("y")], [ones("w", 32, 32)])
    packer.export_library(packer.from_onnx(proto), tmp_path / "a.so")
    assert "plain loops" not in capfd.readouterr().err


def test_constants_that_cannot_be_computed_are_no_news(capfd) -> None:
    """Onnxscript warns of each; the operator is computed in every call."""
    nodes = [node("TopK", "w count", "most places"), node("Add", "x most", "y")]
    weights = [ones("w", 64, 64), weight("count", np.array([64]))]
    packer.from_onnx(model(nodes, [value("x", 64, 64)], [unknown("y")], weights))
    assert capfd.readouterr() == ("", "")
