"""packer check --policy strict: everything that runtime.harden refuses, at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import packer
import runtime
from packer.cli import main
from packer.inspect.check_policy import check_strict

from ...support import needs
from ...support.hardened import CONSTRUCTOR, DESTRUCTOR, MARK, PLAIN, RESOLVER, compiled
from ...support.models import model
from ...support.paths import DATA
from ...support.signing import library

MANY = f"{CONSTRUCTOR}{DESTRUCTOR}{RESOLVER.removeprefix(MARK)}{PLAIN}"
TEXT = 'int x; __asm__(".section both, \\"awx\\"; .quad 1; .text; .quad x");\n'
OPTIONS = (
    *("-Wl,-z,execstack,-z,notext", "-Wl,-rpath,/opt/lib:$ORIGIN/../lib"),
    *("-Wl,--no-as-needed", "-lz", "-lm"),
)


def failed(path: Path, **options: object) -> list[str]:
    """The rules that a library breaks."""
    found = check_strict(path, **options)  # type: ignore[arg-type]
    return [f.name.removeprefix("policy: ") for f in found if f.status == "fail"]


def test_every_violation_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the place, what was found and what to do; as text, as JSON, and by the exit status."""
    path = compiled(MANY + TEXT, tmp_path / "a.so", *OPTIONS)
    assert failed(path) == [
        *("segments", "stack", "text relocations", "search paths", "search paths"),
        *("needed libraries", "resolvers", "constructors", "destructors"),
    ]
    with pytest.raises(SystemExit) as ended:
        main(["check", str(path), "--policy", "strict"])
    text = capsys.readouterr().out
    assert ended.value.code == 1
    assert "fail  policy: constructors: DT_INIT_ARRAY[1]: expected only" in text
    assert "found 'hello' at 0x" in text
    assert "      -> compile with -fPIC" in text
    assert "pass  policy: start-up names: none is defined" in text
    with pytest.raises(SystemExit):
        main(["check", str(path), "--policy", "strict", "--json"])
    content = json.loads(capsys.readouterr().out)
    assert not content["ok"]
    names = [f["name"] for f in content["findings"] if f["status"] == "fail"]
    assert len([name for name in names if name.startswith("policy: ")]) == 9


def test_libraries_and_folders_can_be_allowed(tmp_path: Path) -> None:
    """By name, and below the library's own folder."""
    options = ("-Wl,-rpath,$ORIGIN/lib:${ORIGIN}", "-Wl,--no-as-needed", "-lz")
    path = compiled(PLAIN, tmp_path / "a.so", *options)
    assert failed(path) == ["search paths", "search paths", "needed libraries"]
    assert failed(path, needed=["libz.so.*"], origin=True) == []
    with pytest.raises(SystemExit) as ended:
        main(["check", str(path), "--allow-origin"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("compiler", "linker"), [("gcc", "bfd"), ("gcc", "mold"), ("clang", "lld")]
)
def test_exports_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, linker: str
) -> None:
    """Of C and of C++, with host code, device code and weights; sbom and signature room too."""
    monkeypatch.setenv("CC", needs.program(compiler))
    needs.linker(linker)
    assert failed(library(tmp_path / "a.so", options=[f"-fuse-ld={linker}"])) == []
    more = library(tmp_path / "b.so", output=packer.Output(sbom=True, signature_room=8192))
    assert failed(more) == []


def test_a_model_passes(tmp_path: Path) -> None:
    """And one of C++ without static objects."""
    assert failed(packer.export_library(model(), tmp_path / "model.so")) == []
    source = tmp_path / "a.cc"
    source.write_text('#include <vector>\nextern "C" int f(int n) { return std::vector(n, 1)[0]; }')
    module = packer.CSourceModule(source, functions={"f": "int(int)"})
    assert failed(packer.export_library(module, tmp_path / "cc.so")) == []
    source = tmp_path / "own.cc"
    source.write_text((tmp_path / "a.cc").read_text() + "\nstd::vector<int> made(3);")
    module = packer.CSourceModule(source, functions={"f": "int(int)"})
    assert failed(packer.export_library(module, tmp_path / "own.so")) == ["constructors"]


def test_another_machine(tmp_path: Path) -> None:
    """AArch64 code is followed on every machine."""
    needs.program("aarch64-linux-gnu-gcc")
    assert failed(library(tmp_path / "a.so", build=packer.Build(target="aarch64-linux-gnu"))) == []


def test_older_libraries_pass() -> None:
    """But not system libraries, whose constructors register them."""
    paths = [path for name in ("checksums", "0_1_0") for path in DATA.glob(f"*_{name}/*.so")]
    found = {path.name: failed(path) for path in paths}
    assert found.pop("system.so") == ["constructors"] * 2
    assert len(found) == 8
    assert not any(found.values())


def test_other_constructors_of_packer_are_named(tmp_path: Path) -> None:
    """That of system libraries."""
    path = packer.export_library(
        packer.CSourceModule(PLAIN, functions="auto"), tmp_path / "a.so", system_lib=True
    )
    assert set(failed(path)) == {"constructors"}


def test_a_damaged_file_is_a_finding(tmp_path: Path) -> None:
    """Cut anywhere, it gives findings or an error of the reader."""
    data = compiled(CONSTRUCTOR + PLAIN, tmp_path / "a.so").read_bytes()
    cut = tmp_path / "cut.so"
    for nbytes in range(0, len(data), 499):
        cut.write_bytes(data[:nbytes])
        check_strict(cut)
    assert os.path.exists(cut)
    with pytest.raises(runtime.LibraryLoadError, match="not a regular file|directory"):
        check_strict(tmp_path)
