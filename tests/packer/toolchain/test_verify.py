"""The output of the linker is checked: a wrong one is refused, and the old file stays."""

from __future__ import annotations

import hashlib
import shutil
import struct
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs

EM_AARCH64 = 183


def tree() -> packer.CSourceModule:
    """Host code that imports a device module."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
    )
    root.import_module(runtime.DeviceModule("cuda", b"payload" * 100, "ptx", []))
    return root


@pytest.fixture
def old(tmp_path) -> Path:
    """A library at the path of the export."""
    return packer.export_library(tree(), tmp_path / "lib.so", build=packer.Build(embed="c"))


def refused(old: Path, match: str, **options) -> None:
    """Export over the old file: refused, the old file is unchanged, and no other file is left."""
    before = hashlib.sha256(old.read_bytes()).hexdigest()
    with pytest.raises(packer.ToolchainError, match=match):
        packer.export_library(tree(), old, build=packer.Build(embed="c"), **options)
    assert hashlib.sha256(old.read_bytes()).hexdigest() == before
    assert [p.name for p in old.parent.iterdir()] == [old.name]


def changing(change):
    """A linker that links, and then changes its output."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        Path(output).write_bytes(change(Path(output).read_bytes()))

    return fcompile


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data: b"", "empty file"),
        (lambda data: data[:1000], "output is wrong: "),
        (lambda data: b"not a library", "output is wrong: "),
        (
            lambda data: data[:18] + struct.pack("<H", EM_AARCH64) + data[20:],
            "output is wrong: .*aarch64",
        ),
    ],
    ids=["empty", "truncated", "text", "other machine"],
)
def test_output_that_is_not_a_library_for_the_target_is_refused(change, match, old) -> None:
    """Exit status 0 is not sufficient."""
    refused(old, match, fcompile=changing(change))


def test_missing_output_is_refused(old) -> None:
    """A linker that makes nothing."""
    refused(
        old, "output is wrong: .*No such file", fcompile=lambda output, files, options=None: None
    )


def test_stale_output_is_refused(old, tmp_path_factory) -> None:
    """The library of another tree, as a cache might return it."""
    stale = tmp_path_factory.mktemp("stale") / "stale.so"
    root = tree()
    root.import_module(runtime.MetadataModule())
    packer.export_library(root, stale, build=packer.Build(embed="c"))

    def fcompile(output, files, options=None):
        shutil.copy(stale, output)

    refused(old, "__tvm_dev_mblob has .* bytes in the result, expected", fcompile=fcompile)


def test_blob_with_another_byte_is_refused(old) -> None:
    """Every byte of the blob is compared."""
    change = changing(lambda data: data.replace(b"payloadpayload", b"payloadPayload", 1))
    refused(old, "__tvm_dev_mblob has other bytes in the result", fcompile=change)


@pytest.mark.parametrize("name", ["__tvm_dev_mblob", "__tvm_ffi_add", "__packer_fn_add"])
def test_symbol_that_a_version_script_hides_is_missed(name, old, tmp_path_factory) -> None:
    """An option can drop a symbol that a load needs."""
    script = tmp_path_factory.mktemp("script") / "hide.map"
    script.write_text(f"{{ local: {name}; }};")
    options = [f"-Wl,--version-script={script}"]
    refused(old, f"symbol {name} is missing in the result", options=options)


def test_blob_symbol_without_file_bytes_is_refused(old, tmp_path_factory) -> None:
    """A symbol in .bss."""
    source = tmp_path_factory.mktemp("bss") / "bss.c"
    source.write_text("char __tvm_dev_mblob[64];")
    refused(
        old,
        "__tvm_dev_mblob is wrong in the result: .*is not stored in the file",
        fcompile=lambda output, files, options=None: packer.create_shared(
            output, [f for f in files if "devc" not in str(f)] + [str(source)], options=options
        ),
    )


def test_two_exports_share_a_workspace_dir(tmp_path) -> None:
    """Each has a separate folder in it, which is kept."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a.so", "b.so"):
        packer.export_library(
            tree(), tmp_path / name, workspace_dir=work, build=packer.Build(embed="c")
        )
    assert len(list(work.iterdir())) == 2
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()


@pytest.mark.parametrize("linker", needs.LINKERS)
def test_declared_function_that_nothing_defines_is_refused(linker, tmp_path) -> None:
    """Mold links a protected symbol that is not there."""
    needs.linker(linker)
    root = packer.CSourceModule(
        "int add(int a) { return a; }", functions={"add": "int(int)", "gone": "int(int)"}
    )
    with pytest.raises(packer.ToolchainError, match="declared, but defined by .*: gone$"):
        packer.export_library(root, tmp_path / "lib.so", options=[f"-fuse-ld={linker}"])
    assert list(tmp_path.iterdir()) == []
