"""An output file is replaced at once or not at all; the workspace next to it is private."""

from __future__ import annotations

import os

import pytest

from packer.files.output import replacing
from runtime.error import ExportError

from .replaced_file import NEW, OLD, export, mode, names, untouched


def test_new_file(tmp_path):
    """The folder has the file, and no other."""
    export(tmp_path / "model.so")
    assert (tmp_path / "model.so").read_bytes() == NEW
    assert names(tmp_path) == ["model.so"]


def test_old_file_is_replaced_by_a_new_inode(old):
    """Who has the old file open keeps it."""
    with old.open("rb") as reader:
        export(old)
        assert reader.read() == OLD
    assert old.read_bytes() == NEW
    assert names(old.parent) == ["model.so"]


def test_without_commit_nothing_changes(old):
    """A file is not replaced without a commit."""
    with untouched(old), replacing(old) as workspace:
        workspace.output.write_bytes(NEW)


def test_workspace_is_private_and_beside_the_target(tmp_path):
    """Intermediate files are in a folder of mode 0700 on the target's file system."""
    with replacing(tmp_path / "model.so") as workspace:
        assert workspace.directory.parent == tmp_path
        assert workspace.directory.name.startswith(".packer-")
        assert mode(workspace.directory) == 0o700
        assert workspace.output.parent == workspace.directory
        (workspace.directory / "sub").mkdir()
        (workspace.directory / "sub" / "lib0.o").write_bytes(b"object")
        (workspace.directory / "link").symlink_to(tmp_path)
    assert names(tmp_path) == []


def test_exception_removes_the_workspace(old):
    """An exception of the block passes unchanged, and the old file stays."""
    with untouched(old), pytest.raises(ZeroDivisionError), replacing(old) as workspace:  # noqa: PT012
        workspace.output.write_bytes(NEW)
        raise ZeroDivisionError


def test_kept_workspace(tmp_path):
    """With workspace_dir the intermediate files stay; the output is never among them."""
    kept = tmp_path / "kept"
    kept.mkdir()
    directories = []
    for _ in range(2):
        with replacing(tmp_path / "model.so", workspace_dir=kept) as workspace:
            directories.append(workspace.directory)
            (workspace.directory / "lib0.c").write_text("int x;")
            assert workspace.output.parent.parent == tmp_path
            workspace.output.write_bytes(NEW)
            workspace.commit()
    assert sorted(directories) == sorted(kept / name for name in os.listdir(kept))
    assert all(path.name.startswith("packer-") and mode(path) == 0o700 for path in directories)
    assert [names(path) for path in directories] == [["lib0.c"]] * 2
    assert names(tmp_path) == ["kept", "model.so"]


def test_missing_workspace_dir_is_made(old):
    """A workspace_dir that is not there is made, and kept with the files in it."""
    with replacing(old, workspace_dir=old.parent / "no" / "such") as workspace:
        assert workspace.directory.parent == old.parent / "no" / "such"
    with (
        untouched(old),
        pytest.raises(ExportError, match="no: cannot write: Not a directory"),
        replacing(old, workspace_dir=old / "no"),
    ):
        pass


@pytest.mark.parametrize("umask", [0o077, 0o000, 0o022, 0o027])
def test_mode_follows_the_umask(old, umask):
    """The file gets the mode that a linker gives, whatever the old one had."""
    old.chmod(0o640)
    before = os.umask(umask)
    try:
        export(old)
    finally:
        assert os.umask(before) == umask
    assert mode(old) == 0o777 & ~umask


def test_relative_name_means_the_current_folder(tmp_path, monkeypatch):
    """A bare name means a file in the folder that is current when the block begins."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with replacing("model.so") as workspace:
        workspace.output.write_bytes(NEW)
        monkeypatch.chdir(tmp_path)
        workspace.commit()
    assert (tmp_path / "here" / "model.so").read_bytes() == NEW


def test_other_name_keeps_the_old_bytes(tmp_path, old):
    """Of a file with two names only the one named changes."""
    os.link(old, tmp_path / "other.so")
    export(old)
    assert ((tmp_path / "other.so").read_bytes(), old.read_bytes()) == (OLD, NEW)
