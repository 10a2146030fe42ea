"""packer export, run as a user runs it: flags, project files, output, compiler errors."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

import runtime

from ...support import needs
from ...support.command_line import ADD, CODE, COMMAND, TWO, Packer, done, refused, script_compiler


def test_simple_case_works_with_flags(packer: Packer, tmp_path: Path) -> None:
    """One line on success: path, size, functions, modules, seconds."""
    line = done(packer("export", "model.so", "add.c", "--function", ADD, "--entry", "add"))
    size = (tmp_path / "model.so").stat().st_size / 1024
    assert line.startswith(f"model.so: {size:.1f} KiB, 1 function, 1 module, ")
    assert line.endswith(" s\n")
    assert runtime.load(tmp_path / "model.so")(40, 2) == 42


def test_flags_and_paths_may_be_in_any_order(packer: Packer, tmp_path: Path) -> None:
    """A flag may be between two paths, and be given several times."""
    (tmp_path / "sub.c").write_text(CODE.replace("add", "sub").replace("+", "-"))
    done(packer("export", "--function", ADD, "m.so", "add.c", "--function", f"sub={TWO}", "sub.c"))
    assert runtime.load(tmp_path / "m.so")["sub"](4, 5) == -1


def test_export_refuses_a_library_of_nothing_to_call(packer: Packer, tmp_path: Path) -> None:
    """An object has no types: the advice names its functions, and leads to one that is called."""
    code = "int twice(int x) { return 2 * x; }"
    compiler = ["cc", "-fPIC", "-c", "-x", "c", "-", "-o", "twice.o"]
    subprocess.run(compiler, cwd=tmp_path, input=code, text=True, check=True)
    (tmp_path / "model.so").write_text("old")
    text = refused(packer("export", "model.so", "twice.o"))
    assert text.startswith("packer: model.so: no function is declared; it has twice: declare each")
    assert (tmp_path / "model.so").read_text() == "old"
    option = text.partition("--function '")[2].partition("'")[0]
    assert ", 1 function, " in done(packer("export", "model.so", "twice.o", "--function", option))
    assert done(packer("load", "-q", "model.so", "twice", "21")) == "42\n"
    done(packer("export", "model.o", "add.c"))
    code = "int __tvm_ffi_f(void *h, void *a, int n, void *r) { return 0; }"
    (tmp_path / "own.c").write_text(code)
    done(packer("export", "own.so", "own.c"))
    (tmp_path / "own.cc").write_text("int f(int x) { return x; }")
    assert refused(packer("export", "own.so", "own.cc")) == (
        'f: not exported: extern "C" is missing: write extern "C" int f(int x)\n'
        "packer: own.so: no function is exported: each was left out for its reason above\n"
    )
    (tmp_path / "own.c").write_text("static int one(void) { return 1; }")
    text = refused(packer("export", "own.so", "own.c"))
    assert "own.so: no function is declared, and it exports no C function; in C++ use " in text


def test_a_project_without_functions_is_advised_to_find_them(packer, tmp_path: Path) -> None:
    """The line of the advice is added to packer.toml as it is."""
    project = '[library]\noutput = "m.so"\n[module.m]\nkind = "c"\nsources = ["add.c"]\n'
    (tmp_path / "packer.toml").write_text(project)
    advice = refused(packer("export"))
    assert advice.startswith("packer: m.so: no function is declared; it has add: set functions = ")
    line = advice.partition(": set ")[2].partition(" in the table")[0]
    (tmp_path / "packer.toml").write_text(f"{project}{line}\n")
    assert ", 1 function, " in done(packer("export"))


def test_export_without_declarations_reads_them(packer: Packer, tmp_path: Path) -> None:
    """The functions of the source are exported; their declarations are printed to be kept."""
    code = "long add(long a, long b) { return a + b; } long big(__int128 x) { return (long)x; }"
    (tmp_path / "two.c").write_text(code)
    run = packer("export", "model.so", "two.c")
    line = 'add = "long(long a, long b)"'
    assert (run.returncode, run.stdout.splitlines()[1:]) == (0, [line])
    advice = '{ symbol = "big", declaration = "long(int64_t x)" }'
    assert run.stderr == (
        "big: not exported: parameter 1 'x': __int128 is not supported; let the compiler"
        f" convert: {advice}\n"
    )
    assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"
    (tmp_path / "packer.toml").write_text(
        '[library]\noutput = "m.so"\n[module.m]\nkind = "c"\nsources = ["two.c"]\n'
        f"[module.m.functions]\n{line}\nbig = {advice}\n"
    )
    assert ", 2 functions, " in done(packer("export"))
    project = (tmp_path / "packer.toml").read_text().split("[module.m.functions]")[0]
    (tmp_path / "packer.toml").write_text(project + 'functions = "auto"\n')
    run = packer("export")
    assert (run.returncode, ", 1 function, " in run.stdout) == (0, True)


def test_functions_are_chosen_by_their_names(packer: Packer, tmp_path: Path) -> None:
    """--function NAME reads this function; NAME=TYPE beside it declares one."""
    code = "long add(long a, long b) { return a + b; } int one(void) { return 1; }"
    (tmp_path / "two.c").write_text(code + " int two(void) { return 2; }\n")
    (tmp_path / "two.h").write_text("long add(long, long);\nint one(void);\nint two(void);\n")
    for given in (["two.c"], ["two.c", "--header", "two.h"]):
        names = ["--function", "add", "--function", "two=int(void)"]
        run = packer("export", "model.so", *given, *names)
        assert (run.stderr, ", 2 functions, " in run.stdout) == ("", True)
        assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"
    text = refused(packer("export", "model.so", "two.c", "--function", "ad"))
    assert "function 'ad': the source does not declare ad; give its C type: " in text
    text = refused(packer("export", "model.so", "--header", "two.h", "--function", "ad"))
    assert "function 'ad': the source does not declare ad; give its C type: " in text
    host = '[module.m]\nkind = "c"\nsources = ["two.c"]\n[module.m.functions]\n'
    for table in ('add = "auto"\ntwo = {}', 'header = "two.h"\nonly = ["add", "two"]'):
        (tmp_path / "packer.toml").write_text(host + table.replace("{}", '{ doc = "2" }') + "\n")
        assert ", 2 functions, " in done(packer("export", "model.so"))


def test_a_header_is_exported(packer: Packer, tmp_path: Path) -> None:
    """--header and packer.toml give every function of a header; init writes the file."""
    (tmp_path / "two.h").write_text("long add(long a, long b);\n#define twice(x) (2 * (x))\n")
    done(packer("export", "model.so", "add.c", "--header", "two.h"))
    assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"
    done(packer("init", "--header", "two.h"))
    made = (tmp_path / "packer.toml").read_text()
    assert made.endswith('header = "two.h"\n# add = "long(long a, long b)"\n')
    made = made.replace("# sources", "sources").replace("two.c", "add.c")
    (tmp_path / "packer.toml").write_text(made + 'twice = "long(long x)"\n')
    done(packer("export"))
    assert done(packer("load", "-q", "two.so", "twice", "21")) == "42\n"
    (tmp_path / "packer.toml").write_text(made + "add = false\n")
    assert ", 0 functions, " in done(packer("export"))


def test_several_headers_are_exported(packer: Packer, tmp_path: Path) -> None:
    """Of the command line, of packer.toml, and of the one that init writes."""
    (tmp_path / "one.h").write_text("typedef long num;\nnum add(num a, num b);\n")
    (tmp_path / "two.h").write_text("static inline num twice(num x) { return 2 * x; }\n")
    headers = ["--header", "one.h", "--header", "two.h"]
    assert ", 2 functions, " in done(packer("export", "both.so", "add.c", *headers))
    done(packer("init", *headers))
    made = (tmp_path / "packer.toml").read_text()
    assert 'header = ["one.h", "two.h"]\n# add = "num(num a, num b)"\n# twice = ' in made
    made = made.replace("# sources", "sources").replace("one.c", "add.c")
    (tmp_path / "packer.toml").write_text(made)
    assert ", 2 functions, " in done(packer("export"))
    (tmp_path / "packer.toml").write_text(made.replace('["one.h", "two.h"]', "[]"))
    assert "expected an array of paths, one at least" in refused(packer("export"))


def test_a_header_without_functions_is_refused(packer: Packer, tmp_path: Path) -> None:
    """The message has the header to name; with weights the user asked for a function, too."""
    needs.header("zlib.h", "zlib1g-dev")
    (tmp_path / "own.h").write_text("#include <zlib.h>\n#include <stdio.h>\n")
    text = refused(packer("export", "z.so", "--header", "own.h", "-lz"))
    assert text.startswith(
        "packer: own.h: declares no function, expected at least one; it includes "
        "/usr/include/zlib.h, /usr/include/stdio.h: name the header that declares them too"
    )
    headers = ["--header", "own.h", "--header", "/usr/include/zlib.h"]
    assert "crc32 = " in packer("export", "z.so", *headers, "-lz").stdout
    (tmp_path / "types.h").write_text("struct point { double x, y; };\nextern int n;\n")
    text = refused(packer("export", "z.so", "--header", "types.h"))
    assert text == "packer: types.h: declares no function, expected at least one\n"


def test_a_header_whose_library_is_missing_is_a_link_error(packer: Packer, tmp_path: Path) -> None:
    """A function that nothing defines is found by the linker, not by a load."""
    (tmp_path / "two.h").write_text("long nonesuch(long a, long b);")
    assert "nonesuch" in refused(packer("export", "model.so", "--header", "two.h"))
    assert "no.h: cannot be read" in refused(packer("export", "model.so", "--header", "no.h"))


def test_sources_win_over_the_project_file(packer: Packer, tmp_path: Path) -> None:
    """With sources packer.toml is not even read."""
    (tmp_path / "packer.toml").write_text("no TOML")
    assert "packer.toml: line 1, column 4: " in refused(packer("export"))
    done(packer("export", "model.so", "add.c", "--function", ADD))


def test_flags_win_over_the_project_file(packer: Packer, tmp_path: Path) -> None:
    """Output, entry and embed of the flags win; the project file may have any name and folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/my.toml").write_text(
        '[library]\noutput = "m.so"\nentry = "nonesuch"\n[module.m]\nkind = "c"\n'
        f'sources = ["../add.c"]\nfunctions.add = "{TWO}"\n'
    )
    project = ("export", "--project", "sub/my.toml")
    assert "'nonesuch' is not declared" in refused(packer(*project))
    done(packer(*project, "--entry", "add"))
    assert runtime.load(tmp_path / "sub/m.so")(40, 2) == 42
    done(packer(*project, "other.so", "--entry", "add", "--embed", "c"))
    assert (tmp_path / "other.so").exists()


def test_without_project_and_sources_both_ways_are_shown(packer: Packer) -> None:
    """The message explains both ways."""
    text = refused(packer("export", "model.so"))
    assert "no packer.toml here" in text
    assert "`packer init`" in text
    command = text.strip().partition("or name sources: packer ")[2].split()
    assert command == ["export", "model.so", "add.c"]
    assert packer(*command).returncode == 0


def test_verbose_prints_steps_and_commands(packer: Packer) -> None:
    """Without a terminal, -v alone makes export talk."""
    run = packer("export", "-v", "model.so", "add.c", "--function", ADD)
    assert run.returncode == 0
    steps = [line for line in run.stderr.splitlines() if line.startswith("packer: ")]
    expected = ["collect", "serialize", "save", "embed", "link", "verify", "commit"]
    assert expected == [step.removeprefix("packer: ") for step in steps]
    assert any(" -shared " in line for line in run.stderr.splitlines())
    assert "/bin/sh" not in run.stderr  # the guard of the compilers is not shown


def test_workspace_keeps_the_intermediate_files(packer: Packer, tmp_path: Path) -> None:
    """The workspace keeps the inputs of the compilers."""
    (tmp_path / "kept").mkdir()
    done(packer("export", "model.so", "add.c", "--function", ADD, "--save-temps", "kept"))
    assert list((tmp_path / "kept").glob("packer-*/glue.c"))


def test_step_is_shown_on_a_terminal(packer: Packer, tmp_path: Path) -> None:
    """One line, which is cleared in the end."""
    parent, child = pty.openpty()
    command = [*COMMAND, "export", "model.so", "add.c", "--function", ADD]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=child, check=True)
    os.close(child)
    shown = os.read(parent, 65536)
    os.close(parent)
    assert shown.startswith(b"\r\x1b[Kpacker: collect")
    assert shown.endswith(b"packer: commit\r\x1b[K")


def test_compiler_error_is_shown_whole(packer: Packer, tmp_path: Path) -> None:
    """The compiler's output precedes the one line that sums it up."""
    (tmp_path / "bad.c").write_text("int f(void) { return nonesuch; }\nint g(void) { return 1 }\n")
    lines = refused(packer("export", "m.so", "bad.c")).splitlines()
    assert "packer: " in lines[-1]
    assert any(line.startswith("bad.c:1:") for line in lines)
    assert any(line.startswith("bad.c:2:") for line in lines)


def test_long_compiler_error_is_cut(packer: Packer, tmp_path: Path) -> None:
    """Pages of output would hide the cause."""
    (tmp_path / "bad.c").write_text(
        "".join(f"int f{i}(void) {{ return x{i}; }}\n" for i in range(99))
    )
    lines = refused(packer("export", "m.so", "bad.c")).splitlines()
    assert len(lines) == 42
    assert lines[-2].endswith(" more lines")


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
def test_declared_function_that_is_not_there_is_named(packer: Packer, linker: str) -> None:
    """Any linker's message is handled: for a misspelt name it shows only the wrapper."""
    needs.linker(linker)
    option = f"--option=-fuse-ld={linker}"
    text = refused(packer("export", "m.so", "add.c", option, "--function", f"ad={TWO}"))
    assert text.endswith("; declared, but defined by no source, or as static: ad\n")


def test_source_that_changes_meanwhile_is_detected(packer: Packer, tmp_path: Path) -> None:
    """The compile runs on, but the output stays."""
    (tmp_path / "model.so").write_text("old")
    environment = script_compiler(tmp_path, f"echo >> {tmp_path}/add.c")
    run = packer("export", "model.so", "add.c", "--function", ADD, env=environment)
    assert "add.c: was changed while it was exported; export again" in refused(run)
    assert (tmp_path / "model.so").read_text() == "old"
