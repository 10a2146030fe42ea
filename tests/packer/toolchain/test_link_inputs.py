"""packer link: the accepted inputs, the target machine, and the refusals."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import packer

from ...support import needs
from ...support.process import run_python
from .unlinked_tree import CALL, tree


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_bytes(b""), "begins with b''"),
        (lambda path: path.write_text("#!/bin/sh\n"), r"begins with b'#!/bin/s'.*\(.o, .a, .tar\)"),
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: None, "there is no such file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    ],
    ids=["empty", "script", "folder", "pipe", "missing", "device"],
)
def test_input_that_is_none_of_the_three_is_refused(make, match, tmp_path) -> None:
    """The error names the file, without blocking."""
    make(tmp_path / "input.o")
    with pytest.raises(packer.ExportError, match=match):
        packer.link_library([tmp_path / "input.o"], tmp_path / "model.so")


def test_library_cannot_be_an_input(tmp_path) -> None:
    """A linked library cannot be linked again."""
    library = packer.export_library(tree(), tmp_path / "model.so")
    what = r"a shared library or program \(e_type 3\), expected a relocatable"
    with pytest.raises(packer.ExportError, match=what):
        packer.link_library([library], tmp_path / "again.so")


def test_object_for_another_machine_is_refused(tmp_path) -> None:
    """The error names both machines."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    data = bytearray(made.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    made.write_bytes(data)
    expected = r"model.o: an object for aarch64 \(e_machine 183\), expected x86_64"
    with pytest.raises(packer.ExportError, match=expected):
        packer.link_library([made], tmp_path / "model.so")


def test_tar_for_another_machine_is_linked_for_it(tmp_path) -> None:
    """``packer link --target``; without it both machines are named."""
    needs.program("aarch64-linux-gnu-gcc")
    target = "aarch64-linux-gnu"
    made = packer.export_library(tree(), tmp_path / "model.tar", build=packer.Build(target=target))
    with pytest.raises(packer.ExportError, match=r"\(lib0.o\): an object for aarch64 .*x86_64"):
        packer.link_library([made], tmp_path / "model.so")
    library = packer.link_library([made], tmp_path / "model.so", target=target)
    header = subprocess.check_output(["readelf", "-h", library], text=True)
    assert "AArch64" in header


def test_output_that_is_an_input_is_refused(tmp_path) -> None:
    """Output that is an input is refused."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    before = made.read_bytes()
    with pytest.raises(packer.ExportError, match="is also an input"):
        packer.link_library([made], made)
    assert before == made.read_bytes()


def test_tar_cannot_be_the_output_of_a_link(tmp_path) -> None:
    """Only an export makes a tar."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    with pytest.raises(packer.ExportError, match="a tar is not linked"):
        packer.link_library([made], tmp_path / "model.tar")


def test_two_models_in_one_link_clash(tmp_path) -> None:
    """The linker names the symbol that is defined twice."""
    made = [packer.export_library(tree(), tmp_path / f"{i}.o") for i in range(2)]
    with pytest.raises(packer.ToolchainError, match="multiple definition of `"):
        packer.link_library(made, tmp_path / "model.so")


def test_command_line_links(tmp_path) -> None:
    """``packer link model.tar -o model.so``."""
    packer.export_library(tree(), tmp_path / "model.tar", entry="add")
    command = [sys.executable, "-m", "packer", "link", "model.tar", "-o", "model.so", "-v"]
    (tmp_path / "kept").mkdir()
    command += ["--save-temps", "kept"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("model.so: ")
    assert [line for line in done.stderr.splitlines() if line.startswith("packer: ")] == [
        "packer: read",
        "packer: link",
        "packer: verify",
        "packer: commit",
    ]
    assert sorted(path.name for path in (tmp_path / "kept").rglob("*.o")) == [
        "devc.o",
        "glue.o",
        "lib0.o",
    ]
    assert run_python(CALL, str(tmp_path / "model.so")) == [42, ["cuda"]]


def test_project_decides_about_the_output(tmp_path) -> None:
    """Output, system_lib and c_symbol_prefix are in packer.toml; flags come first."""
    (tmp_path / "add.c").write_text("long add(long a, long b) { return a + b; }")
    (tmp_path / "packer.toml").write_text(
        '[library]\noutput = "net.o"\nsystem_lib = true\nc_symbol_prefix = "net1_"\n'
        '[module.host]\nkind = "c"\nsources = ["add.c"]\n'
        '[module.host.functions]\nadd = "long(long a, long b)"\n'
    )
    export = [sys.executable, "-m", "packer", "export"]
    subprocess.run(export, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(
        [*export, "net2.o", "--c-symbol-prefix=net2_"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    for name, symbol in (("net.o", "__tvm_ffi_net1_add"), ("net2.o", "__tvm_ffi_net2_add")):
        assert symbol in subprocess.check_output(["nm", tmp_path / name], text=True)
