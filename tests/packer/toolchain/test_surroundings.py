"""Compilers run where the user is, and what they print reaches the user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs
from ..compilers import program, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")
F = {"f": "int(void)"}


def call(path: str | Path) -> object:
    """Load a library, and call its function f."""
    return runtime.load(path)["f"]()


def test_relative_paths_in_options_are_those_of_the_current_folder(tmp_path, monkeypatch) -> None:
    """Folders and files, of compilers and of the linker; nothing is left there."""
    monkeypatch.chdir(tmp_path)
    for name in ("include", "out", "lib"):
        Path(name).mkdir()
    write(Path("include/size.h"), "#define SIZE 3\n")
    write(Path("always.h"), "#define MORE 4\n")
    source = '#include "size.h"\nint f(void) { return SIZE + MORE; }\n'
    module = packer.CSourceModule(
        source, functions=F, include=["include"], options=["-include", "always.h", "-g"]
    )
    before = sorted(os.listdir())
    assert call(packer.export_library(module, "out/lib.so")) == 7
    assert sorted(os.listdir()) == before
    assert sorted(os.listdir("out")) == ["lib.so"]


def test_cwd_names_another_folder(tmp_path, monkeypatch) -> None:
    """And the bytes are the same from any folder."""
    write(tmp_path / "size.h", "#define SIZE 3\n")
    code = '#include "size.h"\nconst char *f(void) { return SIZE ? __FILE__ : ""; }\n'
    module = packer.CSourceModule(
        code, functions={"f": "const char *(void)"}, include=["."], options=["-g"]
    )
    made = []
    for folder in (tmp_path, tmp_path.parent, Path("/")):
        monkeypatch.chdir(folder)
        packer.export_library(module, tmp_path / "lib.so", build=packer.Build(cwd=tmp_path))
        made.append((tmp_path / "lib.so").read_bytes())
    assert made[0] == made[1] == made[2]
    with pytest.raises(packer.ExportError, match="no: there is no such folder"):
        packer.export_library(module, tmp_path / "lib.so", build=packer.Build(cwd=tmp_path / "no"))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_name_of_a_file_does_not_depend_on_its_folder(tmp_path, monkeypatch, compiler) -> None:
    """Given by a relative path from two folders: __FILE__ and debug information are the same."""
    monkeypatch.setenv("CC", needs.program(compiler))
    (tmp_path / "src").mkdir()
    write(tmp_path / "src" / "a.c", "const char *f(void) { return __FILE__; }\n")
    made = []
    for folder, path in ((tmp_path, "src/a.c"), (tmp_path / "src", "a.c")):
        monkeypatch.chdir(folder)
        module = packer.CSourceModule(path, functions={"f": "const char *()"}, options=["-g"])
        packer.export_library(module, tmp_path / "lib.so")
        assert call(tmp_path / "lib.so") == "a.c"
        made.append((tmp_path / "lib.so").read_bytes())
    assert made[0] == made[1]
    assert os.fsencode(tmp_path) not in made[0]


def test_removed_current_folder(tmp_path, monkeypatch) -> None:
    """Compilers then start in the private folder."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    module = packer.CSourceModule("int f(void) { return 1; }", functions=F)
    assert call(packer.export_library(module, tmp_path / "lib.so")) == 1


def test_warnings_are_shown(tmp_path, monkeypatch, capfd) -> None:
    """Warnings of the user's files; generated code has none, even with every warning on."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.c", "int g(void);\nint f(void) { int x; return 1; }\n")
    every = ["-Wall", "-Wextra", "-Wpedantic", "-Wredundant-decls"]
    module = packer.CSourceModule("a.c", functions=F, options=every)
    packer.export_library(module, "a.so")
    text = capfd.readouterr().err
    assert "a.c:2:19: warning: unused variable" in text
    assert text.count("warning:") == 1
    seen: list[str] = []

    def progress(step: str) -> None:
        del step

    progress.output = seen.append
    packer.export_library(module, "a.so", progress=progress)
    assert (len(seen), capfd.readouterr().err) == (1, "")


def test_error_names_the_file_as_given(tmp_path, monkeypatch) -> None:
    """Or <string> for a text; the linker names it as an object. No private name is shown."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    write(tmp_path / "src" / "a.c", "int f(void) { return y; }\n")
    with pytest.raises(packer.ToolchainError, match=r"compiling src/a\.c: src/a\.c:1:22: error"):
        packer.export_library(packer.CSourceModule("src/a.c", functions=F), "a.so")
    text = "int f(void) { return y; }\n"
    with pytest.raises(packer.ToolchainError, match="compiling <string>: <string>:1:22: error"):
        packer.export_library(packer.CSourceModule(text, functions=F), "a.so")
    write(tmp_path / "src" / "a.c", "int y(void);\nint f(void) { return y(); }\n")
    with pytest.raises(packer.ToolchainError, match=r"undefined reference to .y") as caught:
        packer.export_library(
            packer.CSourceModule("src/a.c", functions=F), "a.so", options=["-Wl,-z,defs"]
        )
    assert "linking a.so" in str(caught.value)
    assert ".packer-" not in caught.value.stderr
    assert "lib0" not in caught.value.stderr
    assert "a.o: in function `f'" in caught.value.stderr


def test_jobs_limits_the_compilers_that_run_at_a_time(tmp_path, monkeypatch) -> None:
    """One at a time: none starts before the one before it has ended."""
    log = tmp_path / "log"
    script = f'echo start >> "{log}"; sleep 0.1; gcc "$@"; code=$?; echo end >> "{log}"; exit $code'
    monkeypatch.setenv("CC", program(tmp_path / "cc", script + "\n"))
    module = packer.CSourceModule("int f(void) { return 1; }", functions=F)
    module.import_module(packer.CSourceModule("int g(void) { return 1; }"))
    log.write_text("")
    packer.export_library(module, tmp_path / "a.so", build=packer.Build(jobs=1))
    words = log.read_text().split()
    assert words == ["start", "end"] * (len(words) // 2)
    with pytest.raises(packer.ExportError, match="jobs: expected at least 1, found 0"):
        packer.export_library(module, tmp_path / "a.so", build=packer.Build(jobs=0))


def test_libraries_are_linked_after_the_code(tmp_path, monkeypatch) -> None:
    """A library of a module, found in a relative folder."""
    monkeypatch.chdir(tmp_path)
    Path("lib").mkdir()
    write(tmp_path / "more.c", "int more(void) { return 5; }")
    subprocess.run(["gcc", "-c", "-fPIC", "more.c", "-o", "more.o"], check=True)
    subprocess.run(["ar", "cr", "lib/libmore.a", "more.o"], check=True)
    source = "int more(void);\nint f(void) { return more() + N; }\n"
    module = packer.CSourceModule(source, functions=F, libraries=["more"], define=["N=2"])
    assert call(packer.export_library(module, "a.so", options=["-Llib"])) == 7
    for name in ("-lmore", "lib/libmore.a", ""):
        with pytest.raises(packer.ExportError, match="expected a name, such as foo for libfoo.so"):
            packer.CSourceModule(source, functions=F, libraries=[name])
