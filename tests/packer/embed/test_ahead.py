"""A large blob is copied while compiler and linker run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import packer
import runtime
from packer.embed.ahead import LARGE, LEAD

from ...support.process import run_python
from .segments import rewrite

MARK = b"0123456789abcdef" * 4096
ADD = "long add(long a, long b) { return a + b; }"


@pytest.fixture
def weights(tmp_path) -> Path:
    """A large file with bytes at both ends and a hole between."""
    path = tmp_path / "large.safetensors"
    tensor = {"dtype": "U8", "shape": [LARGE], "data_offsets": [0, LARGE]}
    header = json.dumps({"w": tensor}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + MARK)
        file.truncate(8 + len(header) + LARGE)
        file.seek(-len(MARK), 2)
        file.write(MARK)
    return path


def model(weights: Path, source: str = ADD) -> packer.CSourceModule:
    """Host code that imports the weights."""
    root = packer.CSourceModule(source, functions={"add": "long(long a, long b)"})
    root.import_module(runtime.SafetensorsModule(weights))
    return root


def blob_offset(path: Path) -> int:
    """Return the offset of the last PT_LOAD, from readelf."""
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True)
    assert text.stderr == ""
    return [int(line.split()[1], 16) for line in text.stdout.splitlines() if " LOAD " in line][-1]


def works(path: Path) -> bool:
    """Return True if the function and both ends of the weights are there."""
    root = runtime.load(path)
    data = memoryview(root.weights["w"].numpy())
    return root["add"](40, 2) == 42 and data[:64] == MARK[:64] and data[-64:] == MARK[-64:]


def test_large_blob_follows_a_lead_and_loads(weights, tmp_path) -> None:
    """The blob begins at the same offset for all code that fits before it; the lead is a hole."""
    path = packer.export_library(model(weights), tmp_path / "model.so")
    assert blob_offset(path) == LEAD
    assert works(path)
    assert path.stat().st_blocks * 512 < LEAD


@pytest.mark.parametrize("commands", ["strip", "objcopy", "patchelf --set-rpath $ORIGIN/a; strip"])
def test_library_works_after(commands, weights, tmp_path) -> None:
    """The hole in front of the blob may go; symbols and segment hold."""
    path = packer.export_library(model(weights), tmp_path / "model.so")
    rewrite(path, commands)
    assert works(path)


def test_code_that_is_longer_than_the_lead_is_followed_by_the_blob(weights, tmp_path) -> None:
    """Bytes that were copied ahead are given up, and copied again."""
    table = f"const char table[{2 * LEAD}] = {{1}};"
    path = packer.export_library(model(weights, ADD + table), tmp_path / "model.so")
    assert blob_offset(path) > 2 * LEAD
    assert works(path)


def test_failing_compiler_ends_the_copy(weights, tmp_path) -> None:
    """The compiler's error is reported, and no file remains."""
    with pytest.raises(packer.ToolchainError, match="compiling <string>"):
        packer.export_library(model(weights, "long add(;"), tmp_path / "model.so")
    assert sorted(p.name for p in tmp_path.iterdir()) == [weights.name]


def test_weights_that_change_before_they_are_copied_are_an_export_error(weights, tmp_path) -> None:
    """An error during the link is reported when the link has ended."""

    def shorten(step: str) -> None:
        if step == "embed":
            os.truncate(weights, LARGE // 2)

    with pytest.raises(packer.ExportError, match=r"large.safetensors: .* it changed"):
        packer.export_library(model(weights), tmp_path / "model.so", progress=shorten)
    assert not (tmp_path / "model.so").exists()


def test_no_space_for_the_copy_is_an_export_error_and_the_old_file_stays(weights, tmp_path) -> None:
    """The size is reserved first, so a full disk is detected before the copy."""
    (tmp_path / "model.so").write_bytes(b"old")
    refused = run_python(
        "import json, packer, resource, runtime, sys\n"
        "root = packer.CSourceModule(sys.argv[1], functions={'add': 'long(long a, long b)'})\n"
        "root.import_module(runtime.SafetensorsModule(sys.argv[2]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))\n"
        "try:\n    packer.export_library(root, sys.argv[3])\n"
        "except packer.ExportError as error:\n    print(json.dumps(str(error)))\n",
        ADD,
        str(weights),
        str(tmp_path / "model.so"),
    )
    assert refused == f"{tmp_path}/model.so: cannot write: File too large"
    assert (tmp_path / "model.so").read_bytes() == b"old"
