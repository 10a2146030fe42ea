"""A command that expects a library names the command for a file of another kind."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import runtime

from ...support.command_line import CODE, Packer, refused

FILES = {
    "a file.c": CODE,
    "k.cl": "kernel void k() {}",
    "k.ptx": ".version 7.0\n.target sm_70\n.visible .entry k() { ret; }\n",
    "k.cubin": "any bytes",
    "add.ll": "define i64 @add(i64 %a, i64 %b) { %c = add i64 %a, %b  ret i64 %c }",
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """One file of each kind."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command = ["cc", "-fPIC", "-c", "-x", "c", "-", "-o", "add.o"]
    subprocess.run(command, cwd=tmp_path, input=CODE, text=True, check=True)
    subprocess.run(["ar", "rcs", "add.a", "add.o"], cwd=tmp_path, check=True)
    arrays = {"w": np.ones(3, "float32")}
    (tmp_path / "w.params").write_bytes(runtime.save_param_dict(arrays))
    header = b'{"w": {"dtype": "I8", "shape": [2], "data_offsets": [0, 2]}}'
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    return [*FILES, "add.o", "add.a", "w.params", "w.safetensors"]


def test_each_shown_command_works(packer: Packer, files: list[str], tmp_path: Path) -> None:
    """The commands of the message are run; commands that make a library make a good one."""
    for name in files:
        commands = re.findall("`packer ([^`]*)`", refused(packer("check", name)))
        assert commands or name.startswith("add."), name
        for command in commands:
            run = packer(*shlex.split(command.replace("NAME=TYPE", "add=long(long, long)")))
            assert run.returncode == 0, run.stderr
            if "model.so" in command:
                assert packer("check", "model.so").returncode == 0
                (tmp_path / "model.so").unlink()


@pytest.mark.parametrize("command", ["inspect", "extract -o made", "diff k.cl", "check"])
def test_every_command_that_takes_a_library_has_the_hint(
    command: str, packer: Packer, files: list[str]
) -> None:
    """A source names its export, an object or archive its link."""
    code = 2 if command.startswith("diff") else 1
    text = refused(packer(*command.split(), "a file.c"), code)
    assert "packer export model.so " in text
    for name in ("add.o", "add.a") if command != "inspect" else ():  # which prints the command
        text = refused(packer(*command.replace("k.cl", name).split(), name), code)
        shown = text.strip().rpartition("link it first with packer ")[2]
        assert packer(*shlex.split(shown)).returncode == 0


def test_unknown_file_has_no_hint(packer: Packer, tmp_path: Path) -> None:
    """Its suffix is of no kind."""
    (tmp_path / "text").write_text("text")
    assert "`" not in refused(packer("check", "text"))


def test_what_a_compiler_lacks_has_a_hint(packer: Packer, tmp_path: Path) -> None:
    """A missing header, library or definition; the option that the hint names solves it."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include/twice.h").write_text("int twice(int x);\n")
    (tmp_path / "use.c").write_text('#include "twice.h"\nint four(void) { return twice(2); }\n')
    (tmp_path / "twice.c").write_text("int twice(int x) { return 2 * x; }\n")
    assert "; add the folder of twice.h with -I" in refused(packer("export", "model.so", "use.c"))
    given = ["export", "model.so", "--header", "include/twice.h"]
    assert "; add the source or library that defines twice: -l" in refused(packer(*given))
    assert packer(*given, "twice.c").returncode == 0
    (tmp_path / "lib").mkdir()
    assert packer("export", "lib/libtwice.so", "twice.c").returncode == 0
    assert "; install the library -ltwice, or add its " in refused(packer(*given, "-ltwice"))
    assert packer(*given, "-ltwice", "-Llib").returncode == 0
    assert packer("export", "model.so", "use.c", "twice.c", "-Iinclude").returncode == 0
