"""soname=...: the name by which other binaries need a library, as readelf shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs
from ..compilers import output_of


def tree(*, is_host: bool = True) -> runtime.Module:
    """A module in the blob, and a function unless the library has no code."""
    inner = runtime.DeviceModule("cuda", b"payload", "cubin", [])
    if not is_host:
        return inner
    code = "long add(long a, long b) { return a + b; }"
    root = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
    root.import_module(inner)
    return root


def sonames(path: Path) -> list[str]:
    """Every DT_SONAME."""
    return re.findall(r"\(SONAME\) .*\[(.*)\]", output_of("readelf", "-dW", path))


def needed(path: Path) -> list[str]:
    """Every DT_NEEDED."""
    return re.findall(r"\(NEEDED\) .*\[(.*)\]", output_of("readelf", "-dW", path))


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_every_linker_sets_it(tmp_path, linker, embed) -> None:
    """The library loads under another file name, and needs the same files as without."""
    needs.linker(linker)
    options = {"options": [f"-fuse-ld={linker}"], "build": packer.Build(embed=embed)}
    path = tmp_path / "model-1.2.so"
    packer.export_library(tree(), path, **options, output=packer.Output(soname="libmodel.so.1"))
    assert sonames(path) == ["libmodel.so.1"]
    assert runtime.load(path)["add"](40, 2) == 42
    plain = packer.export_library(tree(), tmp_path / "plain.so", **options)
    assert sonames(plain) == []
    assert needed(plain) == needed(path)


def test_library_without_code_has_it(tmp_path) -> None:
    """Such a file is written without a linker; the tools accept it."""
    needs.program("eu-elflint")
    made = {}
    for soname in (None, "libdata.so.1"):
        path = tmp_path / f"{soname}.so"
        packer.export_library(tree(is_host=False), path, output=packer.Output(soname=soname))
        made[soname] = path
        assert runtime.load(path).type_key == "cuda"
        assert output_of("eu-elflint", "--gnu-ld", path) == "No errors\n"
    assert (sonames(made[None]), sonames(made["libdata.so.1"])) == ([], ["libdata.so.1"])


def test_programs_need_the_library_by_it(tmp_path) -> None:
    """A linker stores the SONAME, not the name of the file that it got."""
    path = packer.export_library(
        tree(), tmp_path / "libmodel.so", output=packer.Output(soname="libmodel.so.1")
    )
    (tmp_path / "main.c").write_text("long add(long, long); int main(void) { return add(40, 2); }")
    program = tmp_path / "main"
    link = ["-L", tmp_path, "-lmodel", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", tmp_path / "main.c", "-o", program, *link], check=True)
    assert "libmodel.so.1" in needed(program)
    path.rename(tmp_path / "libmodel.so.1")
    assert subprocess.run([program], check=False).returncode == 42


def test_given_last_it_replaces_that_of_the_options(tmp_path) -> None:
    """The options of the linker driver may have set another one."""
    options = ["-Wl,-soname,libold.so"]
    path = packer.export_library(
        tree(), tmp_path / "a.so", options=options, output=packer.Output(soname="libnew.so")
    )
    assert sonames(path) == ["libnew.so"]


def test_deferred_link_sets_it(tmp_path) -> None:
    """Objects and archives are refused, since only a linked library has the name."""
    for suffix in ("o", "a", "tar"):
        with pytest.raises(packer.ExportError, match=f"'x.so' is for shared .* found .{suffix}"):
            packer.export_library(
                tree(), tmp_path / f"a.{suffix}", output=packer.Output(soname="x.so")
            )
        made = packer.export_library(tree(), tmp_path / f"a.{suffix}")
        linked = packer.link_library([made], tmp_path / f"{suffix}.so", soname="x.so")
        assert sonames(linked) == ["x.so"]
        with pytest.raises(packer.ExportError, match=r"shared libraries, found .o; drop it"):
            packer.link_library([made], tmp_path / "b.o", soname="x.so")


@pytest.mark.parametrize("name", ["", "a/b.so", "..", "-o", "a b", "\u017c.so", "a\nb", "x" * 256])
def test_name_that_no_file_should_have_is_refused(tmp_path, name) -> None:
    """A loader would search it as a path, or a linker take it as an option."""
    with pytest.raises(packer.ExportError, match=r"^soname: expected the name of a file, as 'libm"):
        packer.export_library(tree(), tmp_path / "a.so", output=packer.Output(soname=name))
    assert list(tmp_path.iterdir()) == []


def test_linker_that_ignores_it_is_found(tmp_path) -> None:
    """The name is read back from the output."""

    def without(output, files, options=None):
        rest = [word for word in options or () if "soname" not in word and word != "-Xlinker"]
        packer.create_shared(output, files, [word for word in rest if word != "libm.so"])

    with pytest.raises(packer.ToolchainError, match="SONAME None, expected 'libm.so'; it ignored"):
        packer.export_library(
            tree(), tmp_path / "a.so", fcompile=without, output=packer.Output(soname="libm.so")
        )
    assert list(tmp_path.iterdir()) == []


def test_command_line_and_packer_toml(tmp_path) -> None:
    """``--soname`` of export and link, which replaces that of [library]."""
    (tmp_path / "a.c").write_text("int f(void) { return 1; }")
    (tmp_path / "packer.toml").write_text(
        '[library]\nsoname = "lib1.so"\n'
        '[module.m]\nkind = "c"\nsources = ["a.c"]\nfunctions = "auto"\n'
    )
    for words in (
        ("export", "1.so"),
        ("export", "2.so", "--soname", "lib2.so"),
        ("export", "a.o", "a.c"),
        ("link", "a.o", "-o", "3.so", "--soname", "lib3.so"),
    ):
        command = [sys.executable, "-P", "-m", "packer", *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for number in (1, 2, 3):
        assert sonames(tmp_path / f"{number}.so") == [f"lib{number}.so"]
