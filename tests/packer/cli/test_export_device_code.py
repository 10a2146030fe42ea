"""Device code as a source of ``packer export``: no packer.toml is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runtime

from ...support import needs
from ...support.command_line import ADD, Packer, done, refused

SCALE = "kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }\n"
PTX = ".version 7.0\n.target sm_70\n.visible .entry scale(.param .u64 x) { ret; }\n"


def test_opencl_source_becomes_a_library(packer: Packer, tmp_path: Path) -> None:
    """Its kernels are called from the library, alone or beside host code."""
    needs.opencl_device()
    (tmp_path / "scale.cl").write_text(SCALE)
    done(packer("export", "kernels.so", "scale.cl"))
    done(packer("export", "model.so", "add.c", "scale.cl", "--function", ADD))
    device = runtime.Device("opencl", 0)
    for name in ("kernels.so", "model.so"):
        x = runtime.tensor(np.ones(4, "float32"), device)
        module = runtime.load(tmp_path / name)
        module.get_function("scale", query_imports=True)(x, 3.0, 1, 1, 1, 4, 1, 1)
        assert x.numpy().tolist() == [3, 3, 3, 3]
    assert module["add"](40, 2) == 42


@pytest.mark.parametrize("name", ["k.ptx", "k.cubin", "k.fatbin", "k.cl", "k.spv", "k.hsaco"])
def test_every_standalone_file_is_a_source(name, packer: Packer, tmp_path: Path) -> None:
    """The library has the bytes of the file, and the module that a load of it makes."""
    (tmp_path / name).write_text(PTX)
    run = packer("export", "model.so", name)
    assert run.returncode == 0
    standalone, module = runtime.load(tmp_path / name), runtime.load(tmp_path / "model.so")
    assert (module.type_key, module.fmt) == (standalone.type_key, standalone.fmt)
    assert bytes(module.data) == bytes(standalone.data)
    assert module.functions == standalone.functions


def test_table_of_the_note_is_a_project(packer: Packer, tmp_path: Path) -> None:
    """The note names the kernel that is left out; its text is a complete packer.toml."""
    (tmp_path / "k.cl").write_text(f"{SCALE}typedef int t;\nkernel void one(t n) {{}}\n")
    note = packer("export", "model.so", "k.cl").stderr
    assert note.startswith("packer: note: k.cl: kernel 'one' is left out: the type of its param")
    (tmp_path / "packer.toml").write_text(note.partition("\n")[2])
    done(packer("export", "again.so"))
    assert sorted(runtime.load(tmp_path / "again.so").function_names()) == ["one", "scale"]


@pytest.mark.parametrize("name", ["scale.cl", "two words.cubin", "weights.safetensors"])
def test_source_in_place_of_the_output_is_refused(name, packer: Packer, tmp_path: Path) -> None:
    """The command that the error shows names it as a source."""
    (tmp_path / "packer.toml").write_text("[module.h]\nkind = 'c'\nsources = ['add.c']\n")
    message = refused(packer("export", name))
    option = "--weights " if name.endswith(".safetensors") else ""
    shown = f"'{name}'" if " " in name else name
    assert message.endswith(f"first: packer export model.so {option}{shown}\n")
