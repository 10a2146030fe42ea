"""Tars that no export made are refused, and damaged objects do not reach the linker."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest

import packer
from packer.toolchain.link_input import LinkInput

from .unlinked_tree import tree


def hostile(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    """A tar with an object that is fine, and others."""
    fine = packer.export_library(tree(), path.with_name("fine.o"))
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(fine, "fine.o")
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                entry = tarfile.TarInfo(member[0])
                entry.size = len(member[1])
                tar.addfile(entry, io.BytesIO(member[1]))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """A member that is not a regular file."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def record(*options: str, schema: int = 1) -> tuple[str, bytes]:
    """A packer.json."""
    fields = {"schema": schema, "members": ["fine.o"], "options": options}
    return "packer.json", json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("member", "match"),
    [
        (("../evil.o", b""), "member '../evil.o', expected plain file names without folders"),
        (("/tmp/evil.o", b""), "member '/tmp/evil.o', expected plain"),
        (("a/b.o", b""), "member 'a/b.o', expected plain"),
        (("-evil.o", b""), "member '-evil.o', expected plain"),
        (("@evil.o", b""), "member '@evil.o', expected plain"),
        (("a\nb.o", b""), r"member 'a\\nb.o', expected plain"),
        (("fine.o", b""), "contains 'fine.o' twice"),
        (("evil.so", b""), "contains 'evil.so', expected objects and archives"),
        (("evil.ld.o", b"INPUT(/etc/passwd)"), r"\(evil.ld.o\): begins with b'INPU"),
        (("evil.a", b"!<thin>\n"), "thin archive, expected one that contains its members"),
        (("evil.a", b"!<arch>\nx"), "member header at 0x"),
        (special("link.o", tarfile.SYMTYPE, "/etc/passwd"), "member 'link.o' of type b'2'"),
        (special("link.o", tarfile.LNKTYPE, "fine.o"), "member 'link.o' of type b'1'"),
        (special("null.o", tarfile.CHRTYPE), "member 'null.o' of type b'3'"),
        (special("pipe.o", tarfile.FIFOTYPE), "member 'pipe.o' of type b'6'"),
        (special("folder", tarfile.DIRTYPE), "member 'folder' of type b'5'"),
        (record("-Wl,-plugin,./evil.so"), "contains the option '-Wl,-plugin,./evil.so'"),
        (record("-l:../evil.so"), "contains the option '-l:../evil.so'"),
        (record("@/etc/passwd"), "contains the option '@/etc/passwd'"),
        (record(schema=2), "packer.json: schema 2, expected 1"),
        (("packer.json", b"[" * 100_000), "packer.json: RecursionError"),
        (("packer.json", b'{"schema": 1, "members": [1]}'), r"\[1\] is not an array of strings"),
        (("packer.json", b'{"schema": 1, "members": ["b.o"], "options": []}'), "lacks 'b.o'"),
        (("packer.json", b" " * (2 << 20)), "packer.json of 2097152 bytes"),
    ],
    ids=lambda value: None,
)
def test_tar_that_no_export_made_is_refused(member, match, tmp_path) -> None:
    """Paths, links, devices, scripts, options: nothing gets out of a tar, nothing is run."""
    path = hostile(tmp_path / "evil.tar", member)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(packer.ExportError, match=match):
        packer.link_library([path], tmp_path / "model.so")
    assert sorted(tmp_path.iterdir()) == before


def test_option_that_is_repeated_is_passed_on(tmp_path) -> None:
    """A stored option needs the consent of the one who links; libraries are passed unchanged."""
    options = ["-lm", "-Wl,-soname,libmodel.so"]
    made = packer.export_library(tree(), tmp_path / "model.tar", options=options)
    with pytest.raises(packer.ExportError, match=r"repeat it: --option=-Wl,-soname,libmodel.so"):
        packer.link_library([made], tmp_path / "model.so")
    library = packer.link_library([made], tmp_path / "model.so", options=options[1:])
    dynamic = subprocess.check_output(["readelf", "-d", library], text=True)
    assert "libmodel.so" in dynamic


def test_sparse_member_is_refused(tmp_path) -> None:
    """A member may not claim more than the file has."""
    (tmp_path / "big.o").write_bytes(b"")
    os.truncate(tmp_path / "big.o", 1 << 30)
    subprocess.run(["tar", "-cSf", "evil.tar", "big.o"], cwd=tmp_path, check=True)
    with pytest.raises(packer.ExportError, match="member 'big.o' of type b'S'"):
        packer.link_library([tmp_path / "evil.tar"], tmp_path / "model.so")


def test_tar_cut_anywhere_is_refused(tmp_path) -> None:
    """The error is ours, and no library is made."""
    made = packer.export_library(tree(), tmp_path / "model.tar")
    data = made.read_bytes()
    used = len(data.rstrip(b"\0"))
    for length in range(0, used, 509):
        (tmp_path / "cut.tar").write_bytes(data[:length])
        with pytest.raises(packer.PackerError):
            packer.link_library([tmp_path / "cut.tar"], tmp_path / "model.so")
    assert not (tmp_path / "model.so").exists()


def test_damaged_object_is_refused_before_the_linker_runs(tmp_path) -> None:
    """Every field of its headers may be wrong."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    data = bytearray(made.read_bytes())
    shoff = int.from_bytes(data[40:48], "little")
    places = [*range(4, 64), *range(shoff, min(shoff + 64 * 30, len(data)), 7)]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 0xFF
        (tmp_path / "bad.o").write_bytes(changed)
        try:
            LinkInput(tmp_path / "bad.o").symbol("add")
        except packer.ExportError as error:
            assert "bad.o: " in str(error)


def test_names_within_names_are_refused(tmp_path) -> None:
    """Of an object: a small file does not become gigabytes of names."""
    count, name = 20_000, b"f" * 100_000
    symbols = b"".join(struct.pack("<IBBHQQ", 1 + i, 0x12, 0, 1, 0, 0) for i in range(count))
    strings = b"\0" + name + b"\0"
    sections = [bytes(64)]
    for kind, offset, data, link in ((2, 64, symbols, 2), (3, 64 + len(symbols), strings, 0)):
        fields = (0, kind, 0, 0, offset, len(data), link, 1, 1, 24)
        sections.append(struct.pack("<IIQQQQIIQQ", *fields))
    shoff = 64 + len(symbols) + len(strings)
    ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 1, 62, 1, 0, 0, shoff, 0, 64, 0, 0, 64, 3, 0)
    (tmp_path / "bad.o").write_bytes(header + symbols + strings + b"".join(sections))
    with pytest.raises(packer.ExportError, match=r"bad.o: names that share more than 16 times"):
        packer.link_library([tmp_path / "bad.o"], tmp_path / "model.so")


@pytest.mark.parametrize("make", [packer.tar, packer.create_archive, packer.create_object])
def test_missing_folder_is_refused(make, tmp_path, compile_object) -> None:
    """tar, create_archive and create_object refuse it, too."""
    with pytest.raises(packer.ExportError, match="cannot write: No such file"):
        make(tmp_path / "missing" / "model.x", compile_object("int f(void) { return 1; }"))


@pytest.mark.parametrize("name", ["a\0b.so", "", ".", "x" * 300])
def test_output_that_no_file_can_have_is_refused(name, tmp_path) -> None:
    """Output that no file can have is refused."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    with pytest.raises(packer.ExportError, match=r"no file can|not the name|too long"):
        packer.link_library([made], name)


def test_compressed_tar_is_refused(tmp_path) -> None:
    """Nothing is unpacked that could be larger than the file."""
    packer.export_library(tree(), tmp_path / "model.tar")
    subprocess.run(["gzip", "model.tar"], cwd=tmp_path, check=True)
    with pytest.raises(packer.ExportError, match="begins with"):
        packer.link_library([tmp_path / "model.tar.gz"], tmp_path / "model.so")
