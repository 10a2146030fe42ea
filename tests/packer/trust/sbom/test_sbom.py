"""The bill of materials: valid CycloneDX, with every part, and the same for the same inputs."""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import packer
import runtime
from packer.trust.sbom.read import read_sbom
from runtime.error import ExportError

from ....support import needs
from ....support.command_line import Packer, done, refused

METADATA = {"version": "1.2", "license": "Apache-2.0 OR MIT", "name": "detector"}
PTX = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def digest(data: bytes) -> str:
    """As the bill has it."""
    return hashlib.sha256(data).hexdigest()


def tree(folder: Path) -> packer.CSourceModule:
    """C code in two languages, an archive, kernels, and weights with a license."""
    (folder / "a.c").write_text("int two(void);\nint add(int a) { return a + two(); }\n")
    (folder / "b.cc").write_text('extern "C" int three(void) { return 3; }\n')
    (folder / "two.c").write_text("int two(void) { return 2; }\n")
    subprocess.run(["cc", "-fPIC", "-c", "two.c", "-o", "two.o"], cwd=folder, check=True)
    subprocess.run(["ar", "rcD", "libtwo.a", "two.o"], cwd=folder, check=True)
    data = save({"w": np.arange(4, dtype=np.float32)}, {"license": "CC-BY-4.0"})
    (folder / "w.safetensors").write_bytes(data)
    root = packer.CSourceModule(folder / "a.c", functions={"add": "int(int a)"}, options=["-O1"])
    root.import_module(packer.CSourceModule(folder / "b.cc", functions={"three": "int()"}))
    root.import_module(packer.StaticLibraryModule(folder / "libtwo.a"))
    root.import_module(
        runtime.DeviceModule("cuda", PTX, "ptx", [runtime.FunctionInfo("k", [], [])])
    )
    root.import_module(runtime.SafetensorsModule(folder / "w.safetensors"))
    return root


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with its bill."""
    folder = tmp_path_factory.mktemp("sbom")
    output = packer.Output(metadata=METADATA, sbom=True)
    return packer.export_library(
        tree(folder), folder / "model.so", options=["-lm", "-Wl,-O1"], output=output
    )


def parts_of(bill: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The components by name."""
    return {component["name"]: component for component in bill["components"]}


def values(component: dict[str, Any], name: str) -> list[str]:
    """The values of a property, in the order of the document."""
    rows = component.get("properties", [])
    return [row["value"] for row in rows if row["name"] == f"dso-packer:{name}"]


def content(component: dict[str, Any]) -> str:
    """The digest of a component."""
    (row,) = component["hashes"]
    assert row["alg"] == "SHA-256"
    found: str = row["content"]
    return found


def test_document_is_valid(exported) -> None:
    """By the schema of CycloneDX 1.6, strictly."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = json.dumps(read_sbom(exported))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_document_has_every_part(exported) -> None:
    """Each with the digest of its file."""
    folder, bill = exported.parent, read_sbom(exported)
    parts = parts_of(bill)
    for name in ("a.c", "b.cc", "libtwo.a"):
        assert content(parts[name]) == digest((folder / name).read_bytes())
    assert values(parts["a.c"], "option") == ["-O1"]
    assert values(parts["libtwo.a"], "kind") == ["archive"]
    assert values(parts["m"], "kind") == ["library"]
    kernels, weights = parts["cuda"], parts["safetensors"]
    assert content(kernels) == digest(PTX.encode())
    assert values(kernels, "architecture") == ["ptx sm_80"]
    assert values(kernels, "kernel") == ["k"]
    assert content(weights) == digest((folder / "w.safetensors").read_bytes())
    assert weights["licenses"] == [{"license": {"id": "CC-BY-4.0"}}]
    assert values(weights, "tensor") == ["w"]
    library = bill["metadata"]["component"]
    assert (library["name"], library["version"]) == ("detector", "1.2")
    assert library["licenses"] == [{"expression": "Apache-2.0 OR MIT"}]
    assert "-Wl,-O1" in values(library, "link-option")
    (depends,) = (row for row in bill["dependencies"] if row["ref"] == "library")
    assert len(depends["dependsOn"]) == len(bill["components"]) == len(parts)


def test_document_has_the_compilers(exported) -> None:
    """With what each prints as its version."""
    tools = read_sbom(exported)["metadata"]["tools"]["components"]
    found = {language: tool for tool in tools for language in values(tool, "language")}
    assert set(found) == {"c", "cc", "link"}
    first = subprocess.check_output([found["c"]["name"], "--version"], text=True).splitlines()[0]
    assert found["c"]["version"] == first
    assert {"dso-packer"} <= {tool["name"] for tool in tools}


def test_same_inputs_give_the_same_bytes(exported, tmp_path) -> None:
    """In another folder; nothing depends on time or chance."""
    output = packer.Output(metadata=METADATA, sbom=True)
    again = packer.export_library(
        tree(tmp_path), tmp_path / "model.so", options=["-lm", "-Wl,-O1"], output=output
    )
    assert again.read_bytes() == exported.read_bytes()


def test_every_loader_takes_the_library(exported, tmp_path) -> None:
    """Also after strip, which keeps the document and the note."""
    stripped = tmp_path / "model.so"
    shutil.copy(exported, stripped)
    subprocess.run(["strip", stripped], check=True)
    assert read_sbom(stripped) == read_sbom(exported)
    for path in (exported, stripped):
        assert ctypes.CDLL(str(path)).add(40) == 42
        assert runtime.load(path)["add"](40) == 42
        notes = subprocess.check_output(["readelf", "-nW", path], text=True)
        expected = '{"type":"dso-packer","name":"detector","architecture":"'
        assert "FDO_PACKAGING_METADATA" in notes and expected in notes
    needs.importable("tvm_ffi", "test")
    plain = packer.CSourceModule("int f(int a) { return a; }", functions={"f": "int(int a)"})
    path = packer.export_library(
        plain, tmp_path / "f.so", format="tvm-ffi", output=packer.Output(sbom=True)
    )
    code = f"import tvm_ffi; print(tvm_ffi.load_module({str(path)!r}).f(7))"
    assert subprocess.check_output([sys.executable, "-P", "-c", code], text=True) == "7\n"


@pytest.mark.parametrize("embed", ["llvm", "c"])
def test_every_embedder_stores_it(embed, tmp_path) -> None:
    """The same document."""
    host = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int()"})
    one = packer.export_library(
        host, tmp_path / "f.so", output=packer.Output(sbom=True), build=packer.Build(embed=embed)
    )
    two = packer.export_library(host, tmp_path / "g" / "f.so", output=packer.Output(sbom=True))
    assert read_sbom(one) == read_sbom(two)


def test_headers_and_llvm_are_sources(tmp_path) -> None:
    """The header's digest, and the version of LLVM; no folder of this machine."""
    (tmp_path / "seven.h").write_text("static inline int seven(void) { return 7; }\n")
    root = packer.from_header(tmp_path / "seven.h")
    ir = "define i32 @one() {\n  ret i32 1\n}\n"
    root.import_module(packer.LLVMModule(ir, functions={"one": "int()"}))
    bill = read_sbom(
        packer.export_library(root, tmp_path / "m.so", output=packer.Output(sbom=True))
    )
    parts = parts_of(bill)
    assert content(parts["seven.h"]) == digest((tmp_path / "seven.h").read_bytes())
    assert "llvm text" in parts
    (llvm,) = (t for t in bill["metadata"]["tools"]["components"] if t["name"] == "LLVM")
    assert llvm["version"][0].isdecimal()
    assert str(tmp_path) not in json.dumps(bill)


def test_library_without_code_has_the_document(tmp_path) -> None:
    """Packer writes it without a linker, and without the note."""
    root = runtime.ConstLoaderModule({"w": b"1234"}, {})
    path = packer.export_library(root, tmp_path / "w.so", output=packer.Output(sbom=True))
    (part,) = read_sbom(path)["components"]
    assert values(part, "tensor") == ["w"]
    assert runtime.load(path).weights["w"].shape == (4,)


def test_library_for_another_machine_has_both(tmp_path) -> None:
    """The note is an object of the target."""
    needs.program("aarch64-linux-gnu-gcc")
    host = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int()"})
    build, output = packer.Build(target="aarch64-linux-gnu"), packer.Output(sbom=True)
    path = packer.export_library(host, tmp_path / "f.so", build=build, output=output)
    tools = read_sbom(path)["metadata"]["tools"]["components"]
    assert "aarch64-linux-gnu-gcc" in {tool["name"] for tool in tools}
    assert '"architecture":"aarch64"' in subprocess.check_output(
        ["readelf", "-nW", path], text=True
    )


def test_command_prints_it(packer: Packer, tmp_path) -> None:
    """And refuses a library without one, a file that is not a bill, and other outputs."""
    words = ["--sbom", "--metadata", "version=3"]
    done(packer("export", "add.so", "add.c", *words))
    assert json.loads(done(packer("sbom", "add.so")))["metadata"]["component"]["version"] == "3"
    done(packer("export", "plain.so", "add.c"))
    assert "no bill of materials; export it with --sbom" in refused(packer("sbom", "plain.so"))
    assert "add.c: " in refused(packer("sbom", "add.c"))
    assert "LIBRARY" in refused(packer("sbom"), 2)
    text = refused(packer("export", "add.o", "add.c", "--sbom"))
    assert "sbom is for shared libraries, found .o" in text


def test_without_the_option_no_byte_changes(tmp_path) -> None:
    """Neither a symbol nor a note."""
    host = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int()"})
    plain = packer.export_library(host, tmp_path / "a.so").read_bytes()
    assert b"FDO" not in plain and b"__packer_sbom" not in plain


def test_missing_package_is_named(tmp_path, monkeypatch) -> None:
    """Nothing is exported without the document."""
    monkeypatch.setitem(sys.modules, "cyclonedx", None)
    host = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int()"})
    with pytest.raises(ExportError, match=r"pip install 'dso-packer\[sbom\]'"):
        packer.export_library(host, tmp_path / "f.so", output=packer.Output(sbom=True))
    assert not (tmp_path / "f.so").exists()


def test_damaged_document_is_refused(exported, tmp_path) -> None:
    """Before a load the checksums, by the command its own check."""
    path = tmp_path / "model.so"
    data = exported.read_bytes()
    path.write_bytes(data.replace(b'"bomFormat":"CycloneDX"', b'"bomFormat":"CycloneDY"'))
    with pytest.raises(runtime.BlobFormatError, match="expected a CycloneDX document"):
        read_sbom(path)
    with pytest.raises(runtime.LibraryLoadError, match="__packer_sbom"):
        runtime.load(path)
