"""Fatbins of several cubins and PTX: NVIDIA's own tool and our runtime's choice are the oracles."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import packer
from packer.elf.architecture import architectures_of
from packer.project import read_project
from runtime import DeviceModule, ExportError

from ..support import needs
from ..support.cuda import DATA, compile_ptx

NAMES = ("scale.sm_80.cubin", "scale.sm_80.cuda12.cubin", "scale.sm_100.cubin", "scale.ptx")


def images() -> list[bytes]:
    """Three cubins and PTX."""
    return [(DATA / name).read_bytes() for name in NAMES]


def test_fatbin_holds_its_images() -> None:
    """Each image is stored unchanged, at a multiple of 8, with its architecture."""
    data = packer.create_fatbin(images())
    assert [data.index(image) % 8 for image in images()] == [0, 0, 0, 0]
    found = [str(one) for one in architectures_of(memoryview(data))]
    assert found == ["cubin sm_80", "cubin sm_80", "cubin sm_100", "ptx sm_80"]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_100f"])
def test_cuobjdump_lists_and_extracts(tmp_path: Path, architecture: str) -> None:
    """NVIDIA's cuobjdump finds every image, and extracts it unchanged."""
    tool = needs.cuda_tool("cuobjdump")
    ptx = compile_ptx(architecture=architecture)
    (tmp_path / "all.fatbin").write_bytes(packer.create_fatbin([*images()[:3], ptx]))
    command = [tool, "-xelf", "all", "-xptx", "all", "all.fatbin"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    cubins = {path.read_bytes() for path in tmp_path.glob("*.cubin")}
    (text,) = tmp_path.glob(f"*{architecture}.ptx")
    assert cubins == set(images()[:3])
    assert text.read_text().rstrip("\0\n") == ptx.rstrip("\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "a fatbin without images"),
        ([b"extern void f();"], r"image 0 of a fatbin: expected a cubin or PTX, found b'extern"),
        ([*images(), packer.create_fatbin(images())], "image 4 of a fatbin: expected a cubin"),
        (images()[0], r"images: expected a list of cubins and PTX, found one; write \[image\]"),
    ],
)
def test_bytes_that_are_not_an_image_are_refused(given: Sequence[bytes], message: str) -> None:
    """Source, a fatbin in a fatbin, and an image that would be taken byte by byte."""
    with pytest.raises(ExportError, match=message):
        packer.create_fatbin(given)


def test_project_with_several_sources(tmp_path: Path) -> None:
    """A CUDA module of packer.toml takes cubins and PTX for several devices."""
    for name in NAMES:
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    text = (
        f'[module.kernels]\nkind = "cuda"\nsources = {list(NAMES)}\n'
        '[module.kernels.functions]\nscale = { arg_types = ["handle"] }\n'
    )
    (tmp_path / "packer.toml").write_text(text)
    module = read_project(tmp_path / "packer.toml").root
    assert isinstance(module, DeviceModule)
    assert (module.fmt, bytes(module.data)) == ("fatbin", packer.create_fatbin(images()))
    (tmp_path / NAMES[0]).write_text("no cubin")
    with pytest.raises(ExportError, match=r"\[module.kernels\] sources: image 0 of a fatbin"):
        read_project(tmp_path / "packer.toml")
