"""Folders of an output: missing, protected, unreadable."""

from __future__ import annotations

import pytest

from packer.files.output import replacing
from runtime.error import ExportError

from .replaced_file import NEW, OLD, as_ordinary_user, export, names, untouched


def test_missing_folders_are_made(tmp_path):
    """Folders of an output that are not there are made."""
    export(tmp_path / "no" / "such" / "model.so")
    assert (tmp_path / "no" / "such" / "model.so").read_bytes() == NEW
    assert names(tmp_path / "no" / "such") == ["model.so"]


def test_folders_are_removed_if_the_export_fails(tmp_path):
    """Only the folders that it made: the folder that existed stays."""
    (tmp_path / "kept").mkdir()
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "kept" / "a" / "b" / "model.so"):
        raise ZeroDivisionError
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == []


def test_file_in_place_of_the_folder(old):
    """A path through a file is refused."""
    with untouched(old), pytest.raises(ExportError, match="cannot write: Not a directory"):
        export(old / "model.so")


def test_write_protected_file(shared_folder):
    """A file of mode 0444 is refused before any work, though a rename would succeed."""
    old = shared_folder / "model.so"

    def refused():
        old.write_bytes(OLD)
        old.chmod(0o444)
        with untouched(old), pytest.raises(ExportError, match=r"model\.so: is write-protected$"):
            export(old)

    as_ordinary_user(refused)


def test_unreadable_file_is_replaced(shared_folder):
    """The contents of the old file do not matter: mode 0200 is enough."""
    old = shared_folder / "model.so"

    def replaced():
        old.write_bytes(OLD)
        old.chmod(0o200)
        export(old)
        assert old.read_bytes() == NEW

    as_ordinary_user(replaced)


@pytest.mark.parametrize("folder_mode", [0o555, 0o666])
def test_write_protected_folder(shared_folder, folder_mode):
    """A folder that cannot be written or entered is refused before any work."""
    (shared_folder / "model.so").write_bytes(OLD)
    (shared_folder / "model.so").chmod(0o666)
    shared_folder.chmod(folder_mode)

    def refused():
        with pytest.raises(ExportError, match=r"cannot write"):
            export(shared_folder / "model.so")

    as_ordinary_user(refused)
    shared_folder.chmod(0o777)
    assert names(shared_folder) == ["model.so"]
    assert (shared_folder / "model.so").read_bytes() == OLD


def test_folder_that_cannot_be_listed(shared_folder):
    """Mode 0300 is enough: stale files stay."""
    folder = shared_folder / "dark"

    def exported():
        folder.mkdir(mode=0o300)
        export(folder / "model.so")
        folder.chmod(0o700)
        assert names(folder) == ["model.so"]

    as_ordinary_user(exported)


def test_folder_that_only_claims_to_be_writable():
    """access() says that root may write anywhere; a write to /proc fails."""
    with pytest.raises(ExportError, match=r"/proc/model\.so: cannot write"):
        export("/proc/model.so")
