"""Which files a command takes as input and output, and which it refuses."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ...support.command_line import ADD, CODE, TWO, Packer, digest, done, refused, with_compiler


def test_relative_name_means_the_current_directory(packer: Packer, tmp_path: Path) -> None:
    """A bare name is never searched on the library path."""
    assert "cannot open: No such file" in refused(packer("load", "libm.so.6"))
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done(packer("export", "model.so", "add.c", "--function", ADD))
    (tmp_path / "other").mkdir()
    run = packer("load", "model.so", cwd=tmp_path / "other", env=environment)
    assert "cannot open: No such file" in refused(run)


@pytest.mark.parametrize("path", ["", ".", "..", "/", "add.c/", "./", "nonesuch/m.so"])
def test_output_that_is_not_a_file_is_refused(packer: Packer, tmp_path: Path, path: str) -> None:
    """The refusal precedes the compiler's start."""
    run = packer("export", path, "add.c", "--function", ADD, env=with_compiler("/nonesuch"))
    assert "nonesuch" not in refused(run) or path.startswith("nonesuch")
    assert sorted(os.listdir(tmp_path)) == ["add.c"]


@pytest.mark.parametrize("path", ["", ".", "..", "/", "add.c/", "nonesuch"])
def test_input_that_is_not_a_file_is_refused(packer: Packer, path: str) -> None:
    """Every command that reads refuses such a file."""
    refused(packer("load", path))
    refused(packer("export", "m.so", path))
    refused(packer("export", "--project", path))


@pytest.mark.parametrize(
    "path", ["fifo", "socket", "/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem"]
)
def test_special_file_is_refused_without_reading(packer: Packer, tmp_path: Path, path: str) -> None:
    """A pipe does not block, a device is not read for ever, and none is replaced by a library."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/socket")
        (tmp_path / "link.c").symlink_to(path)
        for arguments in (
            ("load", path),
            ("export", "m.so", "link.c"),
            ("export", "--project", path),
            ("export", path, "add.c", "--function", ADD),
        ):
            text = refused(packer(*arguments, timeout=30))
            # The kernel calls /proc/self/mem a regular file, but reading it is an error.
            assert "regular file" in text or "expected a file" in text or "/proc" in path


def test_output_cannot_be_an_input(packer: Packer, tmp_path: Path) -> None:
    """Any spelling of the path is refused before work."""
    os.link(tmp_path / "add.c", tmp_path / "link")
    (tmp_path / "packer.toml").write_text(
        f"[module.m]\nkind = 'c'\nsources = ['add.c']\nfunctions.add = '{TWO}'\n"
    )
    before = digest(tmp_path / "add.c")
    for path in ("add.c", "./add.c"):
        assert "is the name of a source" in refused(packer("export", path, "add.c"))
    assert "is also an input" in refused(packer("export", "link", "add.c", "--function", ADD))
    assert "is also an input" in refused(packer("export", "packer.toml"))
    assert "is the name of a source" in refused(packer("export", "add.c"))
    assert before == digest(tmp_path / "add.c")
    assert sorted(os.listdir(tmp_path)) == ["add.c", "link", "packer.toml"]


def test_forgotten_output_keeps_the_source(packer: Packer, tmp_path: Path) -> None:
    """Without a named output, the first source takes its place; it is not overwritten."""
    (tmp_path / "sub.c").write_text(CODE.replace("add", "sub"))
    assert "is the name of a source" in refused(packer("export", "add.c", "sub.c"))
    assert (tmp_path / "add.c").read_text() == CODE
