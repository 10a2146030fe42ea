"""Objects, archives and tars: the outputs of an export other than libraries."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

import packer
import runtime

from ...support.process import run_python
from .unlinked_tree import CALL, tree

UNLINKED = ("tar", "o", "a")


def names_in(path: Path) -> list[str]:
    """Return the names that tar(1) finds in a tar."""
    return subprocess.check_output(["tar", "tf", path], text=True).split()


@pytest.mark.parametrize("suffix", UNLINKED)
def test_each_output_is_linked_later_and_is_the_same_tree(suffix, tmp_path) -> None:
    """Exported, linked, loaded and called in a fresh process."""
    made = packer.export_library(tree(), tmp_path / f"model.{suffix}", entry="add")
    library = packer.link_library([made], tmp_path / "model.so")
    assert run_python(CALL, str(library)) == [42, ["cuda"]]


@pytest.mark.parametrize("suffix", UNLINKED)
@pytest.mark.parametrize("embed", ["c", "llvm"])
def test_outputs_are_the_same_bytes_in_another_folder(suffix, embed, tmp_path, monkeypatch) -> None:
    """At another time, in another place, under another umask; no name of a user."""
    paths = []
    for name, umask in (("one", 0o077), ("two", 0o022)):
        (tmp_path / name).mkdir()
        old = os.umask(umask)
        try:
            paths.append(
                packer.export_library(
                    tree(), tmp_path / name / f"model.{suffix}", build=packer.Build(embed=embed)
                )
            )
        finally:
            os.umask(old)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600, 0o644]


def test_tar_links_by_hand_too(tmp_path) -> None:
    """Without packer, tar and cc are sufficient."""
    packer.export_library(tree(), tmp_path / "model.tar", entry="add")
    subprocess.run(["tar", "xf", "model.tar"], cwd=tmp_path, check=True)
    assert names_in(tmp_path / "model.tar") == ["packer.json", "lib0.o", "glue.o", "devc.o"]
    objects = sorted(path.name for path in tmp_path.glob("*.o"))
    command = ["cc", "-shared", "-Wl,-Bsymbolic", *objects, "-o", "model.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert run_python(CALL, str(tmp_path / "model.so")) == [42, ["cuda"]]


def test_date_of_a_tar_is_the_requested_one(tmp_path, monkeypatch) -> None:
    """SOURCE_DATE_EPOCH; otherwise 1970."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    path = packer.export_library(tree(), tmp_path / "model.tar")
    with tarfile.open(path) as tar:
        found = {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in tar}
    assert found == {(1700000000, 0, 0, "", "", 0o644)}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(packer.ExportError, match="SOURCE_DATE_EPOCH='today', expected seconds"):
        packer.export_library(tree(), path)


def test_tar_without_host_code_needs_no_compiler(tmp_path, monkeypatch) -> None:
    """LLVM writes its one object, and nothing is linked."""
    monkeypatch.setenv("PATH", "/nonexistent")
    root = runtime.DeviceModule("cuda", b"text", "ptx", [])
    path = packer.export_library(root, tmp_path / "model.tar")
    with tarfile.open(path) as tar:
        assert [member.name for member in tar] == ["packer.json", "devc.o"]


@pytest.mark.parametrize("suffix", ["c", "cc", "cpp", "cxx", "C", "s"])
def test_sources_become_objects_in_a_tar(suffix, tmp_path) -> None:
    """Every suffix that stands for a language is accepted."""
    source = tmp_path / f"one.{suffix}"
    source.write_text(".globl one\none:\n" if suffix == "s" else "extern int one;\nint one = 1;\n")
    packer.tar(tmp_path / "model.tar", source)
    with tarfile.open(tmp_path / "model.tar") as tar:
        assert [member.name for member in tar] == ["packer.json", "one.o"]


def test_archive_has_an_index_and_one_member(tmp_path) -> None:
    """ar(1) and nm(1) read it; a linker takes all of it or nothing."""
    path = packer.export_library(tree(), tmp_path / "model.a")
    assert subprocess.check_output(["ar", "t", path], text=True).split() == ["lib.o"]
    index = subprocess.check_output(["nm", "-s", path], text=True)
    assert "__tvm_dev_mblob in lib.o" in index
    assert "add in lib.o" in index


def test_archives_and_large_payloads_go_through_a_tar(tmp_path, compile_object) -> None:
    """All members of an archive are there; the assembler adds a payload beyond 1 MiB."""
    archive = tmp_path / "two.a"
    members = [compile_object(f"int f{i}(void) {{ return {i}; }}") for i in range(2)]
    subprocess.run(["ar", "rcs", archive, *members], check=True)
    root = tree(bytes(range(256)) * 5000)
    static = packer.StaticLibraryModule(archive, {"f0": "int(void)", "f1": "int(void)"})
    root.import_module(static)
    made = packer.export_library(root, tmp_path / "model.tar")
    module = runtime.load(packer.link_library([made], tmp_path / "model.so"))
    assert (module["f0"](), module["f1"]()) == (0, 1)
    assert bytes(module.imported_modules[0].data) == bytes(range(256)) * 5000


def test_objects_link_to_an_object(tmp_path) -> None:
    """A tar becomes an object, and that a library."""
    made = packer.export_library(tree(), tmp_path / "model.tar", entry="add")
    merged = packer.link_library([made], tmp_path / "model.o")
    library = packer.link_library([merged], tmp_path / "model.so")
    assert run_python(CALL, str(library)) == [42, ["cuda"]]


def test_segment_is_for_libraries(tmp_path) -> None:
    """Bytes are placed in a linked file, not in an object; the error is raised before any work."""
    steps: list[str] = []
    with pytest.raises(packer.ExportError, match="embed 'segment': expected a library as output"):
        packer.export_library(
            tree(), tmp_path / "m.o", progress=steps.append, build=packer.Build(embed="segment")
        )
    assert steps == []


def test_embedder_beside_a_packer_of_the_users_own_is_refused(tmp_path) -> None:
    """One of the two would have no effect."""
    with pytest.raises(packer.ExportError, match="embed 'c' and fpack_imports"):
        packer.export_library(
            tree(), tmp_path / "m.so", fpack_imports=lambda *_: "m.c", build=packer.Build(embed="c")
        )


def test_fcompile_that_makes_something_else_is_refused(tmp_path) -> None:
    """The suffix of the name must match the output."""
    with pytest.raises(packer.ExportError, match=r"model.tar: fcompile makes 'so', expected 'tar'"):
        packer.export_library(tree(), tmp_path / "model.tar", fcompile=packer.create_shared)
    path = packer.export_library(tree(), tmp_path / "model.tar", fcompile=packer.tar)
    assert path.read_bytes() == packer.export_library(tree(), path).read_bytes()


def test_compiler_that_makes_no_object_is_detected(tmp_path) -> None:
    """The output of every kind is read again and checked."""

    def fcompile(output, objects, options=None):
        Path(output).write_bytes(b"not an object")

    for suffix in UNLINKED:
        with pytest.raises(packer.ToolchainError, match="output is wrong: begins with b'not an o'"):
            packer.export_library(tree(), tmp_path / f"model.{suffix}", fcompile=fcompile)
    assert not list(tmp_path.iterdir())


def test_object_without_the_blob_is_detected(tmp_path) -> None:
    """A symbol is missing, or has other bytes."""

    def without(output, objects, options=None):
        packer.create_object(output, [o for o in objects if "devc" not in o], options)

    def stale(output, objects, options=None):
        packer.create_object(output, objects, options)
        data = Path(output).read_bytes()
        Path(output).write_bytes(data.replace(b".version 7.0", b".version 8.0"))

    for fcompile, match in ((without, "__tvm_dev_mblob is missing"), (stale, "has other bytes")):
        with pytest.raises(packer.ToolchainError, match=match):
            packer.export_library(tree(), tmp_path / "model.o", fcompile=fcompile)


@pytest.mark.parametrize("suffix", UNLINKED)
def test_load_error_states_how_to_link(suffix, tmp_path) -> None:
    """The message contains the command."""
    path = packer.export_library(tree(), tmp_path / f"model.{suffix}")
    with pytest.raises(runtime.LibraryLoadError, match=f"packer link {path} -o model.so"):
        runtime.load(path)
