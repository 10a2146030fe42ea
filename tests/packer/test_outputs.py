"""Objects, archives and tars: what an export makes beside libraries, and what links them."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import packer
import runtime
from packer.toolchain.unlinked import Unlinked

from ..process import run_python

UNLINKED = ("tar", "o", "a")
CALL = (
    "import json, runtime, sys\n"
    "m = runtime.load(sys.argv[1])\n"
    "print(json.dumps([m(40, 2), [i.type_key for i in m.imported_modules]]))"
)


def tree(payload: bytes = b".version 7.0") -> packer.CSourceModule:
    """Host code that imports a device module."""
    root = packer.CSourceModule(
        "long twice(long a) { return 2 * a; }\nlong add(long a, long b) { return a + b; }",
        functions={"add": "long(long a, long b)"},
    )
    root.import_module(runtime.DeviceModule("cuda", payload, "ptx", []))
    return root


def names_in(path: Path) -> list[str]:
    """What tar(1) finds in a tar."""
    return subprocess.check_output(["tar", "tf", path], text=True).split()


# ---- what an export makes


@pytest.mark.parametrize("suffix", UNLINKED)
def test_each_output_is_linked_later_and_is_the_same_tree(suffix, tmp_path) -> None:
    """Exported, linked, loaded and called in a fresh process."""
    made = packer.export_library(tree(), tmp_path / f"model.{suffix}", entry="add")
    library = packer.link_library([made], tmp_path / "model.so")
    assert run_python(CALL, str(library)) == [42, ["cuda"]]


@pytest.mark.parametrize("suffix", UNLINKED)
@pytest.mark.parametrize("embed", ["c", "llvm"])
def test_outputs_are_the_same_bytes_in_another_folder(suffix, embed, tmp_path, monkeypatch) -> None:
    """Row E18: at another time, in another place, under another umask; no name of a user."""
    paths = []
    for name, umask in (("one", 0o077), ("two", 0o022)):
        (tmp_path / name).mkdir()
        old = os.umask(umask)
        try:
            paths.append(
                packer.export_library(tree(), tmp_path / name / f"model.{suffix}", embed=embed)
            )
        finally:
            os.umask(old)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600, 0o644]


def test_tar_links_by_hand_too(tmp_path) -> None:
    """Tar and cc are all that it takes where there is no packer."""
    packer.export_library(tree(), tmp_path / "model.tar", entry="add")
    subprocess.run(["tar", "xf", "model.tar"], cwd=tmp_path, check=True)
    assert names_in(tmp_path / "model.tar") == ["packer.json", "lib0.o", "glue.o", "devc.o"]
    objects = sorted(path.name for path in tmp_path.glob("*.o"))
    command = ["cc", "-shared", "-Wl,-Bsymbolic", *objects, "-o", "model.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert run_python(CALL, str(tmp_path / "model.so")) == [42, ["cuda"]]


def test_date_of_a_tar_is_the_one_that_is_asked_for(tmp_path, monkeypatch) -> None:
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
    """By every suffix that says a language."""
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
    """All members of an archive are there; a payload beyond 1 MiB comes from the assembler."""
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
    """Bytes are placed in what is linked; an object is not. That is told before any work."""
    steps: list[str] = []
    with pytest.raises(packer.ExportError, match="'segment' works on a linked library"):
        packer.export_library(tree(), tmp_path / "m.o", embed="segment", progress=steps.append)
    assert steps == []


def test_embedder_beside_a_packer_of_the_users_own_is_refused(tmp_path) -> None:
    """One of the two would do nothing."""
    with pytest.raises(packer.ExportError, match="embed 'c' beside fpack_imports"):
        packer.export_library(tree(), tmp_path / "m.so", embed="c", fpack_imports=lambda *_: "m.c")


def test_fcompile_that_makes_something_else_is_refused(tmp_path) -> None:
    """A name ends as what is made does."""
    with pytest.raises(packer.ExportError, match=r"model.tar: fcompile makes 'so', expected 'tar'"):
        packer.export_library(tree(), tmp_path / "model.tar", fcompile=packer.create_shared)
    path = packer.export_library(tree(), tmp_path / "model.tar", fcompile=packer.tar)
    assert path.read_bytes() == packer.export_library(tree(), path).read_bytes()


def test_compiler_that_makes_no_object_is_found_out(tmp_path) -> None:
    """Rows F3 and F6: what was made is read back, of every kind."""

    def lying(output, objects, options=None):
        Path(output).write_bytes(b"not an object")

    for suffix in UNLINKED:
        with pytest.raises(packer.ToolchainError, match="output is wrong: begins with b'not an o'"):
            packer.export_library(tree(), tmp_path / f"model.{suffix}", fcompile=lying)
    assert not list(tmp_path.iterdir())


def test_object_without_the_blob_is_found_out(tmp_path) -> None:
    """Rows F6 and F9: a symbol is missing, or holds other bytes."""

    def without(output, objects, options=None):
        packer.create_object(output, [o for o in objects if "devc" not in o], options)

    def stale(output, objects, options=None):
        packer.create_object(output, objects, options)
        data = Path(output).read_bytes()
        Path(output).write_bytes(data.replace(b".version 7.0", b".version 8.0"))

    for fcompile, match in ((without, "__tvm_dev_mblob is missing"), (stale, "holds other bytes")):
        with pytest.raises(packer.ToolchainError, match=match):
            packer.export_library(tree(), tmp_path / "model.o", fcompile=fcompile)


# ---- what can be linked


@pytest.mark.parametrize("suffix", UNLINKED)
def test_load_says_how_to_link(suffix, tmp_path) -> None:
    """Row C23: the message is the command."""
    path = packer.export_library(tree(), tmp_path / f"model.{suffix}")
    with pytest.raises(runtime.LibraryLoadError, match=f"packer link model.{suffix} -o model.so"):
        runtime.load(path)


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
    """A member that is no regular file."""
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
        (("fine.o", b""), "holds 'fine.o' twice"),
        (("evil.so", b""), "holds 'evil.so', expected objects and archives"),
        (("evil.ld.o", b"INPUT(/etc/passwd)"), r"\(evil.ld.o\): begins with b'INPU"),
        (("evil.a", b"!<thin>\n"), "a thin archive"),
        (("evil.a", b"!<arch>\nx"), "member header at 0x"),
        (special("link.o", tarfile.SYMTYPE, "/etc/passwd"), "member 'link.o' of type b'2'"),
        (special("link.o", tarfile.LNKTYPE, "fine.o"), "member 'link.o' of type b'1'"),
        (special("null.o", tarfile.CHRTYPE), "member 'null.o' of type b'3'"),
        (special("pipe.o", tarfile.FIFOTYPE), "member 'pipe.o' of type b'6'"),
        (special("folder", tarfile.DIRTYPE), "member 'folder' of type b'5'"),
        (record("-Wl,-plugin,./evil.so"), "asks for the option '-Wl,-plugin,./evil.so'"),
        (record("-l:../evil.so"), "asks for the option '-l:../evil.so'"),
        (record("@/etc/passwd"), "asks for the option '@/etc/passwd'"),
        (record(schema=2), "packer.json: schema 2, expected 1"),
        (("packer.json", b"[" * 100_000), "packer.json: RecursionError"),
        (("packer.json", b'{"schema": 1, "members": [1]}'), r"\[1\] is no array of strings"),
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
    """Whoever links says that he trusts it; libraries are passed on as they are."""
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
    """Row C2: our error, and no library."""
    made = packer.export_library(tree(), tmp_path / "model.tar")
    data = made.read_bytes()
    used = len(data.rstrip(b"\0"))
    for length in range(0, used, 509):
        (tmp_path / "cut.tar").write_bytes(data[:length])
        with pytest.raises(packer.PackerError):
            packer.link_library([tmp_path / "cut.tar"], tmp_path / "model.so")
    assert not (tmp_path / "model.so").exists()


def test_damaged_object_is_refused_before_the_linker_runs(tmp_path) -> None:
    """Every field of its headers may lie."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    data = bytearray(made.read_bytes())
    shoff = int.from_bytes(data[40:48], "little")
    places = [*range(4, 64), *range(shoff, min(shoff + 64 * 30, len(data)), 7)]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 0xFF
        (tmp_path / "bad.o").write_bytes(changed)
        try:
            Unlinked(tmp_path / "bad.o").symbol("add")
        except packer.ExportError as error:
            assert "bad.o: " in str(error)


def test_names_within_names_are_refused(tmp_path) -> None:
    """Row A14, of an object: a small file does not become gigabytes of names."""
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
    with pytest.raises(packer.ExportError, match=r"bad.o: names that lie within each other"):
        packer.link_library([tmp_path / "bad.o"], tmp_path / "model.so")


@pytest.mark.parametrize("make", [packer.tar, packer.create_archive, packer.create_object])
def test_missing_folder_is_refused(make, tmp_path, compile_object) -> None:
    """Row E13: the makers on their own say so, too."""
    with pytest.raises(packer.ExportError, match="cannot write: No such file"):
        make(tmp_path / "missing" / "model.x", compile_object("int f(void) { return 1; }"))


@pytest.mark.parametrize("name", ["a\0b.so", "", ".", "x" * 300])
def test_output_that_no_file_can_have_is_refused(name, tmp_path) -> None:
    """Rows E3, E6 and E12."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    with pytest.raises(packer.ExportError, match=r"no file can|not the name|too long"):
        packer.link_library([made], name)


def test_compressed_tar_says_so(tmp_path) -> None:
    """Nothing is unpacked that could be larger than the file."""
    packer.export_library(tree(), tmp_path / "model.tar")
    subprocess.run(["gzip", "model.tar"], cwd=tmp_path, check=True)
    with pytest.raises(packer.ExportError, match="begins with"):
        packer.link_library([tmp_path / "model.tar.gz"], tmp_path / "model.so")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_bytes(b""), "begins with b''"),
        (lambda path: path.write_text("#!/bin/sh\n"), r"begins with b'#!/bin/s'.*\(.o, .a, .tar\)"),
        (lambda path: path.mkdir(), "is no regular file"),
        (lambda path: os.mkfifo(path), "is no regular file"),
        (lambda path: None, "there is no such file"),
        (lambda path: path.symlink_to("/dev/zero"), "is no regular file"),
    ],
    ids=["empty", "script", "folder", "pipe", "missing", "device"],
)
def test_input_that_is_none_of_the_three_is_refused(make, match, tmp_path) -> None:
    """Rows C1 and E7: named, without blocking."""
    make(tmp_path / "input.o")
    with pytest.raises(packer.ExportError, match=match):
        packer.link_library([tmp_path / "input.o"], tmp_path / "model.so")


def test_library_is_no_input(tmp_path) -> None:
    """What is linked already cannot be linked again."""
    library = packer.export_library(tree(), tmp_path / "model.so")
    what = r"a shared library or program \(e_type 3\), expected a relocatable"
    with pytest.raises(packer.ExportError, match=what):
        packer.link_library([library], tmp_path / "again.so")


def test_object_for_another_machine_is_refused(tmp_path) -> None:
    """Row C3: both machines are named."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    data = bytearray(made.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    made.write_bytes(data)
    expected = r"model.o: an object for aarch64 \(e_machine 183\), expected x86_64"
    with pytest.raises(packer.ExportError, match=expected):
        packer.link_library([made], tmp_path / "model.so")


def test_tar_for_another_machine_is_linked_for_it(tmp_path) -> None:
    """``packer link --target``; without it both machines are named."""
    if not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("aarch64-linux-gnu-gcc is not installed")
    target = "aarch64-linux-gnu"
    made = packer.export_library(tree(), tmp_path / "model.tar", target=target)
    with pytest.raises(packer.ExportError, match=r"\(lib0.o\): an object for aarch64 .*x86_64"):
        packer.link_library([made], tmp_path / "model.so")
    library = packer.link_library([made], tmp_path / "model.so", target=target)
    header = subprocess.check_output(["readelf", "-h", library], text=True)
    assert "AArch64" in header


def test_output_that_is_an_input_is_refused(tmp_path) -> None:
    """Row E8."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    before = made.read_bytes()
    with pytest.raises(packer.ExportError, match="is an input too"):
        packer.link_library([made], made)
    assert before == made.read_bytes()


def test_tar_is_no_output_of_a_link(tmp_path) -> None:
    """A tar is what an export makes."""
    made = packer.export_library(tree(), tmp_path / "model.o")
    with pytest.raises(packer.ExportError, match="a tar holds what is not linked"):
        packer.link_library([made], tmp_path / "model.tar")


def test_two_models_in_one_link_clash_in_words(tmp_path) -> None:
    """The linker says which symbol is there twice."""
    made = [packer.export_library(tree(), tmp_path / f"{i}.o") for i in range(2)]
    with pytest.raises(packer.ToolchainError, match="multiple definition of `"):
        packer.link_library(made, tmp_path / "model.so")


# ---- by the command line


def test_command_line_links(tmp_path) -> None:
    """``packer link model.tar -o model.so``."""
    packer.export_library(tree(), tmp_path / "model.tar", entry="add")
    command = [sys.executable, "-m", "packer", "link", "model.tar", "-o", "model.so", "-v"]
    (tmp_path / "kept").mkdir()
    command += ["--save-temps", "kept"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("model.so: ")
    assert [line for line in done.stderr.splitlines() if line.startswith("packer: ")] == [
        "packer: read",
        "packer: link",
        "packer: verify",
        "packer: commit",
    ]
    assert sorted(path.name for path in (tmp_path / "kept").rglob("*.o")) == [
        "devc.o",
        "glue.o",
        "lib0.o",
    ]
    assert run_python(CALL, str(tmp_path / "model.so")) == [42, ["cuda"]]


def test_project_says_what_is_made(tmp_path) -> None:
    """Output, system_lib and c_symbol_prefix stand in packer.toml; flags come first."""
    (tmp_path / "add.c").write_text("long add(long a, long b) { return a + b; }")
    (tmp_path / "packer.toml").write_text(
        '[library]\noutput = "net.o"\nsystem_lib = true\nc_symbol_prefix = "net1_"\n'
        '[module.host]\nkind = "c"\nsources = ["add.c"]\n'
        '[module.host.functions]\nadd = "long(long a, long b)"\n'
    )
    export = [sys.executable, "-m", "packer", "export"]
    subprocess.run(export, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(
        [*export, "net2.o", "--c-symbol-prefix=net2_"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    for name, symbol in (("net.o", "__tvm_ffi_net1_add"), ("net2.o", "__tvm_ffi_net2_add")):
        assert symbol in subprocess.check_output(["nm", tmp_path / name], text=True)
