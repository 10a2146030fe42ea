"""Names of an output: any file name, links, and paths that are not files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from packer.files.output import replacing, shown_path
from runtime.error import ExportError

from .replaced_file import NEW, as_ordinary_user, export, mode, names, untouched


@pytest.mark.parametrize(
    "name",
    [
        "a b.so", "a\nb", "a\tb", "'\"`$(x)", "-o", "--", "@file", "ü",
        "e\N{COMBINING ACUTE ACCENT}", "\N{HEBREW LETTER ALEF}.so",
        b"\xff\xfe.so", "n" * 255, "ü" * 127,
    ],
    ids=ascii,
)  # fmt: skip
def test_any_name_works(tmp_path, monkeypatch, name):
    """Spaces, quotes, dashes, non-UTF-8 bytes, 255 bytes: a name is a name."""
    monkeypatch.chdir(tmp_path)
    export(name)
    assert os.listdir(b".") == [os.fsencode(name)]
    export(Path(os.fsdecode(name)), b"again")
    assert Path(os.fsdecode(name)).read_bytes() == b"again"


@pytest.mark.parametrize("name", ["a\0b", "\0", "a\ud800"])
def test_name_that_no_file_can_have(tmp_path, name):
    """NUL and lone surrogates are a ValueError that is ours."""
    with pytest.raises(ExportError, match="no file can have this name") as caught:
        export(f"{tmp_path}/{name}")
    assert isinstance(caught.value, ValueError)
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["", ".", "..", "/", "folder/", "new/", "folder/.", "folder/.."])
def test_name_of_no_file(tmp_path, monkeypatch, name):
    """Empty paths, dots and trailing slashes name no file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExportError, match=r"^\S+: not the name of a file to write$") as caught:
        export(name)
    assert caught.value.path == name
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("name", ["n" * 256, "ü" * 128])
def test_name_too_long(tmp_path, name):
    """256 bytes are refused with the system's words."""
    with pytest.raises(ExportError, match="cannot write: File name too long"):
        export(tmp_path / name)
    assert names(tmp_path) == []


def test_path_too_long(tmp_path):
    """A path that leaves no room for a private folder, or is too long itself, is refused."""
    deep = str(tmp_path) + "/d" * ((4094 - len(str(tmp_path))) // 2)
    with pytest.raises(ExportError, match=r"File name too long|there is no folder"):
        export(deep)
    with pytest.raises(ExportError, match="cannot write: File name too long"):
        export(deep + "/ddddd")


def test_hostile_names_are_quoted_in_messages(tmp_path):
    """A newline in a name does not break the message's line."""
    (tmp_path / "a\nb").mkdir()
    with pytest.raises(ExportError, match=r"a\\nb': is a folder"):
        export(tmp_path / "a\nb")
    assert shown_path("plain ü.so") == "plain ü.so"


def test_folder(tmp_path):
    """A folder is not replaced."""
    (tmp_path / "model.so").mkdir()
    with pytest.raises(ExportError, match=r"model\.so: is a folder, expected a file"):
        export(tmp_path / "model.so")
    assert names(tmp_path) == ["model.so"]


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full", "/dev/zero"])
def test_device(path):
    """A device is refused as such; the test runs as a user who could not harm it."""

    def refused():
        with pytest.raises(ExportError, match=f"^{path}: is a device, pipe or socket"):
            export(path)

    as_ordinary_user(refused)


def test_pipe_and_socket(tmp_path):
    """A FIFO or a socket is refused, and not waited for."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(ExportError, match=f"{name}: is a device, pipe or socket"):
                export(tmp_path / name)
    assert names(tmp_path) == ["pipe", "socket"]


def test_link_end_is_replaced(tmp_path, old):
    """The target of a symbolic link, or of a chain of them, is replaced."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.so").symlink_to("b.so")
    (tmp_path / "links" / "b.so").symlink_to("../model.so")
    export(tmp_path / "links" / "a.so")
    assert old.read_bytes() == NEW
    assert os.readlink(tmp_path / "links" / "a.so") == "b.so"
    assert names(tmp_path / "links") == ["a.so", "b.so"]


def test_dangling_link(tmp_path):
    """A link to a missing file creates it, if its folder exists."""
    (tmp_path / "a.so").symlink_to("model.so")
    (tmp_path / "b.so").symlink_to("no/model.so")
    export(tmp_path / "a.so")
    assert (tmp_path / "model.so").read_bytes() == NEW
    with pytest.raises(ExportError, match=r"b\.so: there is no folder \S+/no$"):
        export(tmp_path / "b.so")
    assert names(tmp_path) == ["a.so", "b.so", "model.so"]


def test_link_loop(tmp_path):
    """A link that leads to itself is refused."""
    (tmp_path / "a.so").symlink_to("b.so")
    (tmp_path / "b.so").symlink_to("a.so")
    with pytest.raises(ExportError, match="cannot write: Too many levels of symbolic links"):
        export(tmp_path / "a.so")
    assert names(tmp_path) == ["a.so", "b.so"]


def test_output_that_is_a_link_is_not_followed(old, tmp_path_factory):
    """A linker that leaves a link in place of a file has not made a file."""
    other = tmp_path_factory.mktemp("other") / "other.so"
    other.write_bytes(NEW)
    other.chmod(0o600)
    with untouched(old), replacing(old) as workspace:
        workspace.output.symlink_to(other)
        with pytest.raises(ExportError, match="cannot write: Too many levels of symbolic links"):
            workspace.commit()
    assert mode(other) == 0o600
