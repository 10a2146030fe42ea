"""packer inspect of standalone files: device code and weights."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import runtime
from packer.cli import main

from ...support import needs

CL = """
kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }
kernel void with_struct(struct s value) {}
"""
PTX = """
.version 7.0
.target sm_80
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n) { ret; }
"""
CU = """
struct pair { double a, b, c; };
extern "C" __global__ void scale(float *x, float by, char n) { if (n) *x *= by; }
extern "C" __global__ void take(pair p) { if (p.b > 0) __trap(); }
"""


def inspected(path: Path, capsys) -> tuple[list[str], dict]:
    """The lines, and the JSON."""
    assert main(["inspect", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["inspect", str(path), "--json"]) == 0
    return lines, json.loads(capsys.readouterr().out)


def test_device_code_shows_its_kernels(tmp_path, capsys) -> None:
    """Each with its types; a kernel that cannot be called is apart."""
    (tmp_path / "k.cl").write_text(CL)
    lines, report = inspected(tmp_path / "k.cl", capsys)
    assert lines == [
        f"{tmp_path}/k.cl: {len(CL)} bytes, opencl, cl",
        "kernels:",
        "  scale(handle, float32)",
        "not callable, a parameter has an unknown type:",
        "  with_struct(struct s value)",
    ]
    (kernel,) = report["kernels"]
    assert (kernel["name"], kernel["arg_types"]) == ("scale", ["handle", "float32"])
    assert [kernel["name"] for kernel in report["left_out"]] == ["with_struct"]


def test_ptx_shows_its_architecture(tmp_path, capsys) -> None:
    """The devices that take it."""
    (tmp_path / "k.ptx").write_text(PTX)
    lines, report = inspected(tmp_path / "k.ptx", capsys)
    assert lines[0].endswith(" bytes, cuda, ptx, compiled for ptx sm_80")
    assert lines[2] == "  scale(handle, float32, int32)"
    assert report["architectures"] == ["ptx sm_80"]


def test_cubin_shows_its_kernels_with_sizes(tmp_path, capsys) -> None:
    """Of nvcc: names and sizes of parameters, no types."""
    (tmp_path / "k.cu").write_text(CU)
    command = [needs.cuda_tool("nvcc"), "-cubin", "-arch=sm_90", "k.cu", "-o", "k.cubin"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines, report = inspected(tmp_path / "k.cubin", capsys)
    assert lines[0].endswith(", cuda, cubin, compiled for cubin sm_90")
    assert sorted(lines[2:4]) == ["  scale(8 bytes, 4 bytes, 1 byte)", "  take(24 bytes)"]
    assert (report["kernels"], len(report["left_out"])) == ([], 2)


def test_weights_show_their_tensors(tmp_path, capsys) -> None:
    """Names, types, shapes and metadata, of either format."""
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "b": {"dtype": "I8", "shape": [4], "data_offsets": [24, 28]},
        }
    ).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(28))
    lines, report = inspected(path, capsys)
    assert lines[1:] == [
        "metadata format: pt",
        "tensors: 2, 28 bytes",
        "  w  float32[2, 3]  24 bytes",
        "  b  int8[4]        4 bytes",
    ]
    assert report["tensors"][1] == {"name": "b", "dtype": "int8", "shape": [4], "nbytes": 4}
    path = tmp_path / "model.params"
    path.write_bytes(runtime.save_param_dict({"w": np.ones((2, 3), "float32")}))
    assert inspected(path, capsys)[0][1:] == [
        "tensors: 1, 24 bytes",
        "  w  float32[2, 3]  24 bytes",
    ]


def test_large_weights_are_not_read(tmp_path, capsys) -> None:
    """A sparse file of 64 GiB is shown at once."""
    nbytes = 1 << 36
    header = json.dumps({"w": {"dtype": "U8", "shape": [nbytes], "data_offsets": [0, nbytes]}})
    path = tmp_path / "large.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.truncate(8 + len(header) + nbytes)
    lines, _ = inspected(path, capsys)
    assert lines[-1].split() == ["w", f"uint8[{nbytes}]", f"{nbytes:,}", "bytes"]


@pytest.mark.parametrize("name", ["k.ptx", "k.cubin", "k.fatbin", "k.cl", "k.spv", "k.hsaco"])
def test_any_bytes_are_shown(name, tmp_path, capsys) -> None:
    """Device code is not checked before a launch: it has no kernels."""
    for data in (b"", b"\x7fELF" + b"\xff" * 100, bytes(range(256))):
        (tmp_path / name).write_bytes(data)
        lines, report = inspected(tmp_path / name, capsys)
        assert lines[0].startswith(f"{tmp_path}/{name}: {len(data)} bytes, ")
        assert report["kernels"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["k.ptx", "--symbols"], "k.ptx: --symbols is for libraries; without it, or with --json"),
        (["none.ptx"], "none.ptx: "),
        (["bad.safetensors"], "bad.safetensors: "),
    ],
)
def test_mistakes_are_named(arguments, message, tmp_path, capsys, monkeypatch) -> None:
    """An option for libraries, no file, damaged weights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "bad.safetensors").write_bytes(b"bad")
    assert main(["inspect", *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"packer: {message}")
