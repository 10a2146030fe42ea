"""A library without host code: made without compiler and linker, and good for every tool."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs
from ...support.elf_poke import Elf
from .segments import DATA, REWRITERS, carried, complaints, rewrite


@pytest.fixture
def whole(tmp_path) -> Path:
    """A library that carries one module."""
    return packer.export_library(carried(), tmp_path / "lib.so")


def test_no_compiler_and_no_linker_is_started(tmp_path, monkeypatch) -> None:
    """An empty PATH is sufficient."""
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    steps: list[str] = []
    path = packer.export_library(carried(), tmp_path / "lib.so", progress=steps.append)
    assert steps == ["collect", "serialize", "save", "place", "verify", "commit"]
    assert bytes(runtime.load(path).data) == DATA


def test_missing_compiler_in_cc_is_an_error(tmp_path, monkeypatch) -> None:
    """CC decides which machine the library is for."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("CC", "/nonexistent/aarch64-linux-gnu-gcc")
    with pytest.raises(packer.ToolchainError, match="aarch64-linux-gnu-gcc"):
        packer.export_library(carried(), tmp_path / "lib.so")


@pytest.mark.parametrize("given", ["fcompile", "options", "addons", "build"])
def test_linker_runs_where_something_is_for_it(given, tmp_path, compile_object) -> None:
    """An fcompile, options, addons, or another embedder."""
    value = {
        "fcompile": packer.create_shared,
        "options": ["-Wl,-soname,mine.so"],
        "addons": [compile_object("int more(void) { return 7; }")],
        "build": packer.Build(embed="llvm"),
    }[given]
    steps: list[str] = []
    path = packer.export_library(
        carried(), tmp_path / "lib.so", progress=steps.append, **{given: value}
    )
    assert "link" in steps
    assert bytes(runtime.load(path).data) == DATA
    assert given != "addons" or ctypes.CDLL(str(path)).more() == 7


def test_tools_have_nothing_to_complain_about(whole) -> None:
    """readelf, objdump, nm and eu-elflint."""
    needs.program("eu-elflint")
    assert complaints(whole) == {"No errors"}
    for command in (["readelf", "-aW"], ["objdump", "-x"], ["nm", "-D"]):
        run = subprocess.run([*command, whole], capture_output=True, text=True, check=True)
        assert run.stderr == ""
        assert "Warning" not in run.stdout


def test_nothing_in_it_can_be_run(whole) -> None:
    """Neither a segment nor the stack is executable; the blob is read-only."""
    assert packer.inspect_library(whole).problems == ()
    elf = Elf(whole.read_bytes())
    assert [elf.peek(load, "p_flags") for load in elf.programs("LOAD")] == [6, 4]
    assert [elf.peek(stack, "p_flags") for stack in elf.programs("STACK")] == [6]


@pytest.mark.parametrize("commands", REWRITERS.values(), ids=REWRITERS.keys())
def test_library_works_after(commands, whole) -> None:
    """Tools that rewrite the file keep it loadable."""
    rewrite(whole, commands)
    assert bytes(runtime.load(whole).data) == DATA


def test_same_tree_gives_the_same_bytes(whole, tmp_path) -> None:
    """The bytes are equal under another name, in another folder."""
    (tmp_path / "other").mkdir()
    other = packer.export_library(carried(), tmp_path / "other" / "name.so")
    assert other.read_bytes() == whole.read_bytes()


def test_it_can_be_linked_against(whole, tmp_path, compile_object) -> None:
    """A program finds the blob through the linker and the loader too."""
    source = tmp_path / "main.c"
    source.write_text(
        "extern const unsigned char __tvm_dev_mblob[];\n"
        "int main(void) { return __tvm_dev_mblob[8] != 2; }\n"  # two entries
    )
    program = tmp_path / "main"
    subprocess.run(["cc", "-fPIC", source, whole, "-o", program], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    subprocess.run([program], env=environment, check=True)


def test_modes_follow_the_umask_as_after_a_link(whole) -> None:
    """The mode is 0777 less the umask."""
    mask = os.umask(0)
    os.umask(mask)
    assert whole.stat().st_mode & 0o777 == 0o777 & ~mask
    assert shutil.which(str(whole)) == str(whole)
