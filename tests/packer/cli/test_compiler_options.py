"""packer export with the options of compilers, and what compilers print."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import runtime

from ...support import needs
from ...support.command_line import ADD, Packer, done, refused

CODE = '#include "size.h"\nint f(void) { return SIZE + MORE; }\n'
F = ("--function", "f=int(void)")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A source that needs a header, a macro and C11, and a library to link."""
    (tmp_path / "include").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "include/size.h").write_text("#define SIZE 3\n")
    (tmp_path / "a.c").write_text(CODE)
    (tmp_path / "more.c").write_text("int more(void) { return 5; }\n")
    subprocess.run(["gcc", "-c", "-fPIC", "more.c", "-o", "more.o"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "cr", "lib/libmore.a", "more.o"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("separator", ["", " "])
def test_options_are_taken_as_compilers_take_them(packer: Packer, code: Path, separator) -> None:
    """Values are in the same word or in the next one."""
    (code / "a.c").write_text(
        '#include "size.h"\nint more(void);\n_Static_assert(__STDC_VERSION__ == 201112L, "");\n'
        "#ifdef __OPTIMIZE__\n#error optimized\n#endif\n"
        "int f(void) { return SIZE + MORE + more(); }\n"
    )
    pairs = [("-I", "include"), ("-D", "MORE=4"), ("-O", "0"), ("-L", "lib"), ("-l", "more")]
    words = [word for pair in pairs for word in separator.join(pair).split(" ")]
    done(packer("export", *words, "-std=c11", "new/folder/a.so", "a.c", *F, "-j1"))
    assert runtime.load(code / "new/folder/a.so")["f"]() == 12


def test_options_that_need_sources_say_so(packer: Packer, code: Path) -> None:
    """The advice is the place for them; libraries are for a project file too."""
    (code / "packer.toml").write_text(
        '[library]\noutput = "a.so"\n[module.m]\nkind = "c"\nsources = ["a.c"]\n'
        'include = ["include"]\nfunctions = { f = "int(void)" }\n'
    )
    (code / "a.c").write_text("int more(void);\n" + CODE.replace("MORE", "more()"))
    error = refused(packer("export", "-DX=1"), 2)
    assert "argument -DX=1: needs SOURCE; or set options in packer.toml" in error
    (code / "elsewhere").mkdir()
    done(
        packer(
            "export", "-L../lib", "-lmore", "--project", "../packer.toml", cwd=code / "elsewhere"
        )
    )
    assert runtime.load(code / "a.so")["f"]() == 8
    assert "jobs: expected at least 1, found 0" in refused(packer("export", "-j", "0"))


def test_warnings_reach_stderr(packer: Packer, tmp_path: Path) -> None:
    """Also if the export succeeds, and as the compiler words them."""
    (tmp_path / "add.c").write_text("#warning look here\nlong add(long a, long b) { return a; }\n")
    run = packer("export", "a.so", "add.c", "--function", "add=long(long, long)")
    assert run.returncode == 0
    assert run.stderr.splitlines()[0].startswith("add.c:1:2: warning: #warning look here")
    assert run.stdout.startswith("a.so: ")


def test_each_error_is_shown_once(packer: Packer, tmp_path: Path) -> None:
    """Our line names the file as given, and does not repeat the compiler's."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.c").write_text("int f(void) { return y; }\n")
    error = refused(packer("export", "a.so", "src/a.c", *F))
    assert error.count("'y' undeclared") == 1
    assert "src/a.c:1:22: error: 'y' undeclared" in error
    assert error.splitlines()[-1] == "packer: gcc exited with 1 compiling src/a.c"
    assert sorted(os.listdir(tmp_path)) == ["add.c", "src"]


def test_failed_export_leaves_no_folder(packer: Packer, tmp_path: Path) -> None:
    """The folders that it made for the output are removed."""
    (tmp_path / "a.c").write_text("int f(void) { return y; }\n")
    refused(packer("export", "new/folder/a.so", "a.c", *F))
    assert sorted(os.listdir(tmp_path)) == ["a.c", "add.c"]


def test_visibility(packer: Packer, code: Path) -> None:
    """The option, and the key of packer.toml."""
    (code / "a.c").write_text("int helper = 1;\nint f(void) { return helper; }\n")
    done(packer("export", "a.so", "a.c", *F, "--visibility", "declared"))
    (code / "packer.toml").write_text(
        '[library]\noutput = "b.so"\nvisibility = "declared"\n'
        '[module.m]\nkind = "c"\nsources = ["a.c"]\nfunctions = { f = "int(void)" }\n'
    )
    done(packer("export"))
    assert (code / "a.so").read_bytes() == (code / "b.so").read_bytes()
    names = subprocess.run(["nm", "-D", code / "a.so"], capture_output=True, text=True).stdout
    assert "helper" not in names


def test_compiler_cache(packer: Packer, tmp_path: Path) -> None:
    """CC="ccache gcc": the second export of a source compiles nothing."""
    needs.program("ccache")
    environment = {
        **os.environ,
        "CC": "ccache gcc",
        "CXX": "ccache g++",
        "CCACHE_DIR": str(tmp_path / "cache"),
    }
    first = done(packer("export", "a.so", "add.c", "--function", ADD, env=environment))
    made = (tmp_path / "a.so").read_bytes()
    subprocess.run(
        [str(shutil.which("ccache")), "-z"], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    assert first.startswith("a.so: ")
    done(packer("export", "a.so", "add.c", "--function", ADD, env=environment))
    assert (tmp_path / "a.so").read_bytes() == made
    counts = subprocess.run(
        [str(shutil.which("ccache")), "--print-stats"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    numbers = dict(line.split("\t") for line in counts.splitlines())
    assert (numbers["cache_miss"], numbers["direct_cache_hit"]) == ("0", "2")


def test_warnings_that_are_asked_for_are_printed(packer: Packer, tmp_path: Path) -> None:
    """-Wall and -W unused-variable reach the compiler; -Werror makes them errors."""
    (tmp_path / "a.c").write_text("int f(void) { int unused; return 1; }\n")
    done(packer("export", "a.so", "a.c"))
    assert "unused variable" in packer("export", "a.so", "a.c", "-Wall").stderr
    words = ["-W", "unused-variable", "-Werror"]
    assert "unused variable" in refused(packer("export", "a.so", "a.c", *words))
