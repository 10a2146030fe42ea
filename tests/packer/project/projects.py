"""Project files and sources for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime
from packer.project import Project, read_project

ADD = "#include <stdint.h>\nint64_t add(int64_t a, int64_t b) { return a + b; }\n"
SUB = "#include <stdint.h>\nint64_t sub(int64_t a, int64_t b) { return a - b; }\n"
MUL = "define i64 @mul(i64 %a, i64 %b) { %c = mul i64 %a, %b  ret i64 %c }"
TWO = "int64_t(int64_t a, int64_t b)"
HOST = f'[module.host]\nkind = "c"\nsources = ["add.c"]\nfunctions.add = "{TWO}"\n'
KERNELS = '[module.kernels]\nkind = "opencl"\nsources = ["k.cl"]\n'


def project(folder: Path, text: str) -> Project:
    """Read a project file of this text."""
    (folder / "packer.toml").write_text(text)
    return read_project(folder / "packer.toml")


def refusal(folder: Path, text: str) -> str:
    """Read a project file that is refused; return the message after the file's path."""
    with pytest.raises(packer.ExportError) as caught:
        project(folder, text)
    path, message = str(folder / "packer.toml"), str(caught.value)
    assert message.startswith(f"{path}: ")
    assert caught.value.path == path
    return message.removeprefix(f"{path}: ")


def exported(found: Project, folder: Path) -> runtime.Module:
    """Export a project and load it."""
    output = folder / "out.so"
    packer.export_library(
        found.root, output, entry=found.entry, build=packer.Build(cwd=found.folder)
    )
    return runtime.load(output)
