"""packer.toml: sources that share declarations, and inputs that change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer
import runtime
from packer.project import project_of_sources
from packer.project.sources import SourceFileModule, source_of

from .projects import ADD, HOST, TWO, exported, project, refusal


def test_sources_share_their_declarations(folder: Path) -> None:
    """Each function belongs to the LLVM file that defines it, else to C."""
    subprocess.run(["cc", "-c", "-fPIC", "sub.c", "-o", "sub.o"], cwd=folder, check=True)
    files = [folder / name for name in ("sub.o", "mul.ll", "add.c")]
    found = project_of_sources(files, dict.fromkeys(("sub", "mul", "add"), TWO))
    library = exported(found, folder)
    assert tuple(library[name](*a) for name, a in CALLS.items()) == (42, 40, 20)
    assert found.counts() == (3, 1)


CALLS = {"add": (40, 2), "sub": (42, 2), "mul": (4, 5)}


@pytest.mark.parametrize("order", [("add.c", "sub.c"), ("sub.c", "add.c")])
def test_wrong_declaration_is_a_compile_error_in_any_file(folder: Path, order) -> None:
    """The file that defines the function need not be the first."""
    files = [folder / name for name in order]
    found = project_of_sources(files, {"add": TWO, "sub": "double(double a)"})
    with pytest.raises(packer.ToolchainError, match="conflicting types for 'sub'"):
        packer.export_library(found.root, folder / "out.so")


def test_unknown_suffix_is_refused(folder: Path) -> None:
    """Device code is for the project file."""
    with pytest.raises(packer.ExportError, match=r"suffix '.cl', expected one of .*packer\.toml"):
        source_of(folder / "k.cl")
    assert isinstance(project_of_sources([folder / "add.c"], {}).root, SourceFileModule)


def test_changed_input_is_detected(folder: Path) -> None:
    """A file that was rewritten, or removed, is not the one that was read."""
    inputs = project(folder, HOST).inputs
    inputs.check_unchanged()
    assert (folder / "packer.toml", folder / "add.c") == inputs.paths
    (folder / "add.c").write_text(ADD + "/* more */")
    with pytest.raises(packer.ExportError, match=r"add\.c: was changed while it was exported"):
        inputs.check_unchanged()
    (folder / "add.c").unlink()
    with pytest.raises(packer.ExportError, match=r"add\.c: cannot be read: No such file"):
        inputs.check_unchanged()


def test_patterns_name_sources(folder: Path) -> None:
    """In sorted order, at any depth, and each file once."""
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/mul.c").write_text("int mul(int a, int b) { return a * b; }\n")
    functions = f'functions = {{ add = "{TWO}", sub = "{TWO}", mul = "int(int, int)" }}'
    text = f'[module.m]\nkind = "c"\nsources = ["sub.c", "*.c", "**/*.c"]\n{functions}\n'
    found = project(folder, text)
    assert [path.name for path in found.inputs.paths[1:]] == ["sub.c", "add.c", "mul.c"]
    assert exported(found, folder)["mul"](6, 7) == 42
    text = text.replace("sub.c", "none*.c")
    assert "[module.m] sources: no file matches 'none*.c'" in refusal(folder, text)


def test_keys_of_compilers(folder: Path, monkeypatch) -> None:
    """Relative folders are in that of packer.toml, wherever the export runs."""
    (folder / "include").mkdir()
    (folder / "include/size.h").write_text("#define SIZE 30\n")
    (folder / "z.c").write_text(
        '#include "size.h"\n#include <math.h>\n'
        "double f(double x) { return cbrt(x) + SIZE + MORE; }\n"
    )
    text = (
        '[module.m]\nkind = "c"\nsources = ["z.c"]\ninclude = ["include"]\n'
        'define = ["MORE=4", "UNUSED"]\nlibraries = ["m"]\n'
        'functions = { f = "double(double x)" }\n'
    )
    monkeypatch.chdir("/")
    assert exported(project(folder, text), folder)["f"](8) == 36
    assert "[module.m] include: there is no folder 'no'" in refusal(
        folder, text.replace('["include"]', '["no"]')
    )
    assert "library '-lm': expected a name" in refusal(folder, text.replace('"m"', '"-lm"'))


def test_a_table_changes_functions_that_are_found(tmp_path: Path) -> None:
    """``"*"`` stands for the functions of every source that the table does not name."""
    (tmp_path / "a.c").write_text("int one(void) { return 1; } int gone(void) { return 0; }")
    (tmp_path / "b.c").write_text("int two(int a) { return 2 * a; }")
    (tmp_path / "packer.toml").write_text(
        '[module.host]\nkind = "c"\nsources = ["a.c", "b.c"]\n[module.host.functions]\n'
        '"*" = "auto"\ntwo = { defaults = { a = 1 } }\ngone = false\n'
    )
    found = packer.read_project(tmp_path / "packer.toml")
    loaded = runtime.load(packer.export_library(found.root, tmp_path / "ab.so"))
    assert [loaded["one"](), loaded["two"](), loaded["two"](3)] == [1, 2, 6]
    with pytest.raises(runtime.FunctionNotFoundError):
        loaded["gone"]
