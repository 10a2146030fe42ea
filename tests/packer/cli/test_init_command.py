"""packer init: the project file that it writes, and files that it does not overwrite."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy

import runtime
from packer.trust.encrypt.keys import create_encryption_key

from ...support.command_line import Packer, done, refused
from ...support.graphs import sum_graph


def test_export_accepts_the_output_of_init(packer: Packer, tmp_path: Path) -> None:
    """The sample is a whole project: init, export, load."""
    assert done(packer("init")) == "host.c: written\npacker.toml: written\n"
    assert ", 2 functions, 1 module, " in done(packer("export"))
    numpy.save(tmp_path / "x.npy", numpy.arange(3, dtype="float32"))
    assert done(packer("load", "model.so", "scale", "@x.npy", "3", "0.5")) == (
        "model.so\n  library: add, scale\nscale(@x.npy, 3, 0.5) -> None\n@x.npy: [0.  0.5 1. ]\n"
    )


def test_commented_settings_of_init_are_right(packer: Packer, tmp_path: Path) -> None:
    """With every comment taken away it is a project still, as soon as its files are there."""
    done(packer("init", "."))
    text = (tmp_path / "packer.toml").read_text()
    lines = [line.removeprefix("# ") if _is_setting(line) else line for line in text.splitlines()]
    text = "\n".join(lines).replace('["z"]', '["m"]')
    text = text.replace('target = "', '# target = "')  # not for C
    text = text.replace("c_symbol_prefix", "# c_symbol_prefix").replace("= true", "= false")
    text = text.replace('"constants", "weights"]', '"constants", "weights", "own"]')
    text = text.replace('root = "host"', 'root = "graph"')
    (tmp_path / "packer.toml").write_text(text)
    (tmp_path / "include").mkdir()
    (tmp_path / "graph.json").write_text(json.dumps(sum_graph()))
    (tmp_path / "kernels.cl").write_text("kernel void scale() {}")
    (tmp_path / "build.py").write_text(
        "import runtime\ndef make():\n    return runtime.ConstLoaderModule({}, {})\n"
    )
    numpy.save(tmp_path / "w.npy", numpy.zeros(3))
    (tmp_path / "model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    subprocess.run(
        ["cc", "-c", "-fPIC", "-xc", "/dev/null", "-o", "foo.o"], cwd=tmp_path, check=True
    )
    key = create_encryption_key(tmp_path / "acme")
    assert ", 2 functions, 7 modules, " in done(packer("export"))
    assert runtime.load(tmp_path / "model.so", key=key)["add"](40, 2) == 42


def _is_setting(line: str) -> bool:
    words = line.removeprefix("# ").split()
    return line.startswith("# ") and (words[1:2] == ["="] or words[0].startswith("[module."))


def test_init_overwrites_nothing(packer: Packer, tmp_path: Path) -> None:
    """A source stays as it is; a project file is a refusal, and nothing is written."""
    (tmp_path / "host.c").write_text("int mine;")
    assert "host.c: exists already, not changed" in done(packer("init"))
    assert (tmp_path / "host.c").read_text() == "int mine;"
    (tmp_path / "host.c").unlink()
    assert "packer.toml: exists already" in refused(packer("init"))
    assert not (tmp_path / "host.c").exists()
    assert "add.c: cannot create the folder: File exists" in refused(packer("init", "add.c"))
