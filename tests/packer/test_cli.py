"""The command line, run as a user runs it: in processes of its own (bad-input, part E)."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import runtime

from ..graphs import sum_graph

COMMAND = (sys.executable, "-m", "packer")
TWO = "int64_t(int64_t a, int64_t b)"
ADD = f"add={TWO}"
CODE = "#include <stdint.h>\nint64_t add(int64_t a, int64_t b) { return a + b; }\n"
Packer = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def packer(tmp_path: Path) -> Packer:
    """``packer(*arguments)``: run it in a folder that holds add.c."""
    (tmp_path / "add.c").write_text(CODE)

    def run(*arguments: str | bytes, **options) -> subprocess.CompletedProcess[str]:
        options = {"cwd": tmp_path, "timeout": 120, "errors": "surrogateescape"} | options
        return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, **options)

    return run


def done(run: subprocess.CompletedProcess[str]) -> str:
    """What a run that went well says; nothing on stderr."""
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def refused(run: subprocess.CompletedProcess[str], code: int = 1) -> str:
    """What a run that was refused says: the message, and no traceback."""
    assert code == run.returncode
    assert "Traceback" not in run.stderr
    assert "internal error" not in run.stderr
    if code == 1:
        assert run.stderr.splitlines()[-1].startswith("packer: ")
    return run.stderr


def digest(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- the commands


def test_simple_case_goes_by_flags(packer: Packer, tmp_path: Path) -> None:
    """One line on success: path, size, functions, modules, seconds."""
    line = done(packer("export", "model.so", "add.c", "--function", ADD, "--entry", "add"))
    size = (tmp_path / "model.so").stat().st_size / 1024
    assert line.startswith(f"model.so: {size:.1f} KiB, 1 function, 1 module, ")
    assert line.endswith(" s\n")
    assert runtime.load(tmp_path / "model.so")(40, 2) == 42


def test_flags_and_paths_come_in_any_order(packer: Packer, tmp_path: Path) -> None:
    """A flag may stand between two paths, and be given several times."""
    (tmp_path / "sub.c").write_text(CODE.replace("add", "sub").replace("+", "-"))
    done(packer("export", "--function", ADD, "m.so", "add.c", "--function", f"sub={TWO}", "sub.c"))
    assert runtime.load(tmp_path / "m.so")["sub"](4, 5) == -1


def test_export_says_that_nothing_can_be_called(packer, tmp_path) -> None:
    """Without a declaration a C function cannot be called; the advice leads to one that can."""
    run = packer("export", "model.so", "add.c")
    assert (run.returncode, len(run.stderr.splitlines())) == (0, 1)
    advice = "model.so: it declares no function; declare each one that is to be called: --function"
    assert run.stderr.startswith(advice)
    assert ", 1 function, " in done(packer("export", "model.so", "add.c", "--function", ADD))
    assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"
    done(packer("export", "model.o", "add.c"))
    code = "int __tvm_ffi_f(void *h, void *a, int n, void *r) { return 0; }"
    (tmp_path / "own.c").write_text(code)
    done(packer("export", "own.so", "own.c"))


def test_init_writes_what_export_takes(packer: Packer, tmp_path: Path) -> None:
    """The sample is a whole project: init, export, load."""
    assert done(packer("init")) == "host.c: written\npacker.toml: written\n"
    assert ", 2 functions, 1 module, " in done(packer("export"))
    numpy.save(tmp_path / "x.npy", numpy.arange(3, dtype="float32"))
    assert done(packer("load", "model.so", "scale", "@x.npy", "3", "0.5")) == (
        "model.so\n  library: add, scale\nscale(@x.npy, 3, 0.5) -> None\n@x.npy: [0.  0.5 1. ]\n"
    )


def test_commented_settings_of_init_are_right(packer: Packer, tmp_path: Path) -> None:
    """With every comment taken away it is a project still, as soon as its files are there."""
    done(packer("init", "."))
    text = (tmp_path / "packer.toml").read_text()
    lines = [line.removeprefix("# ") if _is_setting(line) else line for line in text.splitlines()]
    text = "\n".join(lines).replace('"-lfoo"', '"-lm"').replace("foo.o", "foo.o")
    text = text.replace('target = "', '# target = "')  # not for C
    text = text.replace("c_symbol_prefix", "# c_symbol_prefix").replace("= true", "= false")
    text = text.replace('"constants", "weights"]', '"constants", "weights", "own"]')
    text = text.replace('root = "host"', 'root = "graph"')
    (tmp_path / "packer.toml").write_text(text)
    (tmp_path / "graph.json").write_text(json.dumps(sum_graph()))
    (tmp_path / "kernels.cl").write_text("kernel void scale() {}")
    (tmp_path / "build.py").write_text(
        "import runtime\ndef make():\n    return runtime.ConstLoaderModule({}, {})\n"
    )
    numpy.save(tmp_path / "w.npy", numpy.zeros(3))
    (tmp_path / "model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    subprocess.run(
        ["cc", "-c", "-fPIC", "-xc", "/dev/null", "-o", "foo.o"], cwd=tmp_path, check=True
    )
    assert ", 2 functions, 7 modules, " in done(packer("export"))
    assert runtime.load(tmp_path / "model.so")["add"](40, 2) == 42


def _is_setting(line: str) -> bool:
    words = line.removeprefix("# ").split()
    return line.startswith("# ") and (words[1:2] == ["="] or words[0].startswith("[module."))


def test_init_overwrites_nothing(packer: Packer, tmp_path: Path) -> None:
    """A source stays as it is; a project file is a refusal, and nothing is written."""
    (tmp_path / "host.c").write_text("int mine;")
    assert "host.c: is there already, left as it is" in done(packer("init"))
    assert (tmp_path / "host.c").read_text() == "int mine;"
    (tmp_path / "host.c").unlink()
    assert "packer.toml: is there already" in refused(packer("init"))
    assert not (tmp_path / "host.c").exists()
    assert "add.c: cannot make the folder: File exists" in refused(packer("init", "add.c"))


def test_sources_win_over_the_project_file(packer: Packer, tmp_path: Path) -> None:
    """With sources packer.toml is not even read."""
    (tmp_path / "packer.toml").write_text("no TOML")
    assert "packer.toml: line 1, column 4: " in refused(packer("export"))
    done(packer("export", "model.so", "add.c", "--function", ADD))


def test_flags_win_over_the_project_file(packer: Packer, tmp_path: Path) -> None:
    """Output, entry and embed; the project file may have any name and lie anywhere."""
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
    """The message is a guide."""
    text = refused(packer("export", "model.so"))
    assert "there is no packer.toml here" in text
    assert "`packer init`" in text
    assert "packer export model.so add.c --function" in text


def test_verbose_prints_steps_and_commands(packer: Packer) -> None:
    """Without a terminal, -v alone makes export talk."""
    run = packer("export", "-v", "model.so", "add.c", "--function", ADD)
    assert run.returncode == 0
    steps = [line for line in run.stderr.splitlines() if line.startswith("packer: ")]
    expected = ["collect", "serialize", "save", "embed", "link", "verify", "commit"]
    assert expected == [step.removeprefix("packer: ") for step in steps]
    assert any(" -shared " in line for line in run.stderr.splitlines())
    assert "/bin/sh" not in run.stderr  # what guards the compilers is none of the commands


def test_workspace_keeps_the_intermediate_files(packer: Packer, tmp_path: Path) -> None:
    """What the compilers were given can be looked at."""
    (tmp_path / "kept").mkdir()
    done(packer("export", "model.so", "add.c", "--function", ADD, "--save-temps", "kept"))
    assert list((tmp_path / "kept").glob("packer-*/glue.c"))


def test_step_is_shown_on_a_terminal(packer: Packer, tmp_path: Path) -> None:
    """One line, which is gone in the end."""
    parent, child = pty.openpty()
    command = [*COMMAND, "export", "model.so", "add.c", "--function", ADD]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=child, check=True)
    os.close(child)
    shown = os.read(parent, 65536)
    os.close(parent)
    assert shown.startswith(b"\r\x1b[Kpacker: collect")
    assert shown.endswith(b"packer: commit\r\x1b[K")


def test_load_prints_tree_and_result(packer: Packer) -> None:
    """--quiet leaves the result alone."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    tree = "model.so\n  library: add\n"
    assert tree == done(packer("load", "model.so"))
    assert f"{tree}add(40, -1) -> 39\n" == done(packer("load", "model.so", "add", "40", "-1"))
    assert done(packer("load", "--quiet", "model.so", "add", "--", "0x28", "-1")) == "39\n"


def test_load_shows_imports(packer: Packer, tmp_path: Path) -> None:
    """A module that two others import is drawn twice, its imports once."""
    (tmp_path / "k.cl").write_text("kernel void k() {}")
    module = "[module.{}]\nkind = 'opencl'\nsources = ['k.cl']\nimports = {}\n"
    (tmp_path / "packer.toml").write_text(
        f"[module.h]\nkind = 'c'\nsources = ['add.c']\nfunctions.add = '{TWO}'\n"
        "imports = ['a', 'b']\n"
        + module.format("a", ["c"])
        + module.format("b", ["c"]).replace("opencl", "hip")
        + module.format("c", ["d"])
        + module.format("d", []).replace("opencl", "cuda")
        + "functions.k = {}\n"
    )
    assert ", 1 function, 5 modules, " in done(packer("export", "m.so"))
    assert done(packer("load", "m.so")).splitlines() == [
        "m.so",
        "  library: add",
        "    opencl",
        "      opencl",
        "        cuda: k",
        "    hip",
        "      opencl (as above)",
    ]


ARGUMENTS = {
    "int": ("42", 42),
    "negative": ("-7", -7),
    "hexadecimal": ("0x2a", 42),
    "float": ("1e-3", 1e-3),
    "infinite": ("-inf", float("-inf")),
    "true": ("true", True),
    "false": ("False", False),
    "none": ("none", None),
    "text": ("some text", "some text"),
    "empty": ("", ""),
    "quoted": ('"42"', "42"),
}


@pytest.mark.parametrize(("text", "expected"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_argument_is_parsed(text: str, expected: object) -> None:
    """A word of the command line becomes what it looks like."""
    from packer.cli.load import parse_argument

    value = parse_argument(text)
    assert (type(expected), expected) == (type(value), value)


def test_error_of_a_call_is_one_line(packer: Packer) -> None:
    """Wrong arguments, an unknown function, an array that is not there."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    assert "packer: TypeError: add: " in refused(packer("load", "model.so", "add", "x", "2"))
    assert "no function 'ad' in its tree; near" in refused(packer("load", "model.so", "ad"))
    text = refused(packer("load", "model.so", "add", "@x.npy", "1"))
    assert "x.npy: cannot be read: No such file" in text


def test_compiler_error_is_shown_whole(packer: Packer, tmp_path: Path) -> None:
    """What the compiler said stands before the one line that sums it up."""
    (tmp_path / "bad.c").write_text("int f(void) { return nonesuch; }\nint g(void) { return 1 }\n")
    lines = refused(packer("export", "m.so", "bad.c")).splitlines()
    assert "packer: " in lines[-1]
    assert any(line.startswith("bad.c:1:") for line in lines)
    assert any(line.startswith("bad.c:2:") for line in lines)


def test_long_compiler_error_is_cut(packer: Packer, tmp_path: Path) -> None:
    """Pages of it would hide what is wrong."""
    (tmp_path / "bad.c").write_text(
        "".join(f"int f{i}(void) {{ return x{i}; }}\n" for i in range(99))
    )
    lines = refused(packer("export", "m.so", "bad.c")).splitlines()
    assert len(lines) == 42
    assert lines[-2].endswith(" more lines")


WRONG_USAGE = {
    "no command": (),
    "unknown command": ("exprot",),
    "unknown option": ("export", "--functio", ADD),
    "no value": ("export", "--function"),
    "no declaration": ("export", "m.so", "add.c", "--function", "add"),
    "twice": ("export", "m.so", "add.c", "--function", ADD, "--function", ADD),
    "function of a project": ("export", "m.so", "--function", ADD),
    "two projects": ("export", "m.so", "add.c", "--project", "packer.toml"),
    "embed": ("export", "m.so", "add.c", "--embed", "b"),
    "no library": ("load",),
    "option behind": ("load", "m.so", "--quiet"),
    "inspect": ("inspect",),
    "two folders": ("init", "a", "b"),
}


@pytest.mark.parametrize("arguments", WRONG_USAGE.values(), ids=WRONG_USAGE.keys())
def test_wrong_usage_exits_with_2(packer: Packer, tmp_path: Path, arguments) -> None:
    """The usage, the mistake, and no work."""
    text = refused(packer(*arguments), 2)
    assert text.startswith("usage: packer")
    assert sorted(os.listdir(tmp_path)) == ["add.c"]


def test_version(packer: Packer) -> None:
    """One line, for programs too."""
    assert f"packer {runtime.__version__}\n" == done(packer("--version"))


def test_inspect_shows_a_damaged_blob_and_exits_with_1(
    packer: Packer, compile_library: Callable[..., Path]
) -> None:
    """What can be shown is shown, with what is wrong."""
    blob = "const unsigned char __tvm_dev_mblob[9] = {1, 0, 0, 0, 0, 0, 0, 0, 0};"
    for options in ([], ["--json"]):
        run = packer("inspect", str(compile_library(blob)), *options)
        assert run.returncode == 1
        assert "a blob of 1 bytes, expected at least 8" in run.stdout
        assert run.stderr == ""


@pytest.mark.parametrize(
    "command", ["export", "load", "inspect", "diff", "extract", "check", "doctor", "init"]
)
def test_help_has_examples(packer: Packer, command: str) -> None:
    """Each command explains itself, and the first help names it."""
    assert f"\n  {command} " in done(packer("--help"))
    text = done(packer(command, "--help"))
    assert "\nexamples:\n" in text
    assert f"  packer {command} " in text


def test_help_is_cheap(tmp_path: Path) -> None:
    """No help imports what only some exports need."""
    code = (
        "import sys; from packer.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print({'llvmlite', 'elftools', 'numpy', 'pycparser'} & set(sys.modules))"
    )
    commands = ("export", "load", "inspect", "diff", "extract", "check", "doctor", "init")
    for arguments in (["--help"], *([command, "--help"] for command in commands)):
        command = [sys.executable, "-c", code, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout.splitlines()[-1] == "set()"


def test_internal_error_is_one_line(packer: Packer, tmp_path: Path) -> None:
    """A bug shows its type, and where to get the rest."""
    (tmp_path / "build.py").write_text(
        "import runtime\n"
        "class Broken(runtime.Module):\n"
        "    property_mask = 1\n"
        "    def save_to_binary(self, writer): raise KeyError('bug\\x1b')\n"
        "def make(): return Broken()\n"
    )
    (tmp_path / "packer.toml").write_text("[module.b]\nkind='python'\nfactory='build.py:make'\n")
    run = packer("export", "m.so")
    assert run.returncode == 1
    assert run.stderr == (
        "packer: internal error: KeyError: 'bug\\x1b'\n"
        "run with PACKER_TRACEBACK=1 for the traceback\n"
    )
    run = packer("export", "m.so", env=os.environ | {"PACKER_TRACEBACK": "1"})
    assert run.stderr.startswith("Traceback (most recent call last)")
    assert "in save_to_binary" in run.stderr


# ---- E: paths

HOSTILE = {
    "space": "a b",
    "newline": "a\nb",
    "tab": "a\tb",
    "quotes": "a'b\"c`d",
    "shell": "$(touch x); rm -rf *&|<>",
    "unicode": "naïve-模型",
    "combining": "e\u0301",
    "right to left": "\u202egnp",
    "terminal": "\x1b[31mred\x07",
    "backslash": "a\\b",
    "percent": "%n%s{}",
    "dash": "-o",
    "dashes": "--help",
    "at": "@file",
    "not UTF-8": "\udcff\udcfe",
    "long": "n" * 252,
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_name_is_only_a_name(packer: Packer, tmp_path: Path, name: str) -> None:
    """E1, E2, E4, E12, E20: as output, as source and as library; printed so that nothing acts."""
    source, output = f"{name}.c", f"{name}.so"
    (tmp_path / "add.c").rename(tmp_path / source)
    line = done(packer("export", "--function", ADD, "--", output, source))
    assert all(c.isprintable() for c in line.removesuffix("\n"))
    assert sorted([source, output]) == sorted(os.listdir(tmp_path))
    assert done(packer("load", "-q", "--", output, "add", "40", "2")) == "42\n"
    assert all(c.isprintable() or c == "\n" for c in done(packer("load", "--", output)))


def test_hostile_folder_is_only_a_folder(packer: Packer, tmp_path: Path) -> None:
    """E1, for all that lies below it: the project, its sources, the workspace."""
    for name in HOSTILE.values():
        folder = tmp_path / name
        done(packer("init", "--", name))
        run = packer("export", cwd=folder)
        assert "model.so: " in done(run)
        assert done(packer("load", "-q", "model.so", "add", "40", "2", cwd=folder)) == "42\n"


def test_hostile_text_in_errors_is_escaped(packer: Packer, tmp_path: Path) -> None:
    """E20: no control character of a name, key or option reaches the terminal."""
    evil = "\x1b]0;title\x07"
    (tmp_path / "evil.toml").write_text(
        f'[module.m]\n"{evil.encode("unicode_escape").decode()}" = 1'.replace(
            "\\x1b", "\\u001b"
        ).replace("\\x07", "\\u0007")
    )
    for run in (
        packer("load", evil),
        packer(evil),
        packer("export", f"--{evil}"),
        packer("export", "m.so", f"{evil}.c"),
        packer("export", "m.so", evil),
        packer("export", "--project", evil),
        packer("export", "--project", "evil.toml"),
        packer("export", f"{evil}/m.so", "add.c"),
        packer("export", "m.so", "add.c", "--function", f"{evil}=int(int)"),
        packer("export", "m.so", "add.c", "--function", f"add={evil}"),
        packer("export", "m.so", "add.c", "--entry", evil),
        packer("init", f"{evil}/new"),
    ):
        assert run.returncode in (1, 2)
        assert refused(run, run.returncode)
        assert not {"\x1b", "\x07"} & set(run.stderr + run.stdout)


def test_relative_name_means_the_current_directory(packer: Packer, tmp_path: Path) -> None:
    """E5: a bare name is never looked up on the library path."""
    assert "cannot open: No such file" in refused(packer("load", "libm.so.6"))
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done(packer("export", "model.so", "add.c", "--function", ADD))
    (tmp_path / "other").mkdir()
    run = packer("load", "model.so", cwd=tmp_path / "other", env=environment)
    assert "cannot open: No such file" in refused(run)


@pytest.mark.parametrize("path", ["", ".", "..", "/", "add.c/", "./", "nonesuch/m.so"])
def test_output_that_is_no_file_is_refused(packer: Packer, tmp_path: Path, path: str) -> None:
    """E6, E13: before the compiler starts."""
    run = packer("export", path, "add.c", "--function", ADD, env=_with_compiler("/nonesuch"))
    assert "nonesuch" not in refused(run) or path.startswith("nonesuch")
    assert sorted(os.listdir(tmp_path)) == ["add.c"]


@pytest.mark.parametrize("path", ["", ".", "..", "/", "add.c/", "nonesuch"])
def test_input_that_is_no_file_is_refused(packer: Packer, path: str) -> None:
    """E6, by every command that reads."""
    refused(packer("load", path))
    refused(packer("export", "m.so", path))
    refused(packer("export", "--project", path))


@pytest.mark.parametrize(
    "path", ["fifo", "socket", "/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem"]
)
def test_special_file_is_refused_without_reading(packer: Packer, tmp_path: Path, path: str) -> None:
    """E7: no pipe blocks, no device is read for ever, none is replaced by a library."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/socket")
        (tmp_path / "link.c").symlink_to(path)
        for arguments in (
            ("load", path),
            ("export", "m.so", "link.c"),
            ("export", "--project", path),
            ("export", path, "add.c", "--function", ADD),
        ):
            text = refused(packer(*arguments, timeout=30))
            # The kernel calls /proc/self/mem a regular file; reading it is an error all the same.
            assert "regular file" in text or "expected a file" in text or "/proc" in path


def test_output_is_no_input(packer: Packer, tmp_path: Path) -> None:
    """E8: under whatever spelling, refused before work."""
    os.link(tmp_path / "add.c", tmp_path / "link")
    (tmp_path / "packer.toml").write_text(
        f"[module.m]\nkind = 'c'\nsources = ['add.c']\nfunctions.add = '{TWO}'\n"
    )
    before = digest(tmp_path / "add.c")
    for path in ("add.c", "./add.c"):
        assert "is the name of a source" in refused(packer("export", path, "add.c"))
    assert "is an input too" in refused(packer("export", "link", "add.c", "--function", ADD))
    assert "is an input too" in refused(packer("export", "packer.toml"))
    assert "is the name of a source" in refused(packer("export", "add.c"))
    assert before == digest(tmp_path / "add.c")
    assert sorted(os.listdir(tmp_path)) == ["add.c", "link", "packer.toml"]


def test_forgotten_output_keeps_the_source(packer: Packer, tmp_path: Path) -> None:
    """Where no output is named, the first source stands in its place; it is not written over."""
    (tmp_path / "sub.c").write_text(CODE.replace("add", "sub"))
    assert "is the name of a source" in refused(packer("export", "add.c", "sub.c"))
    assert (tmp_path / "add.c").read_text() == CODE


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
def test_declared_function_that_is_not_there_is_named(packer: Packer, linker: str) -> None:
    """However a linker says it: of a name that was misspelt it shows the wrapper alone."""
    option = f"--option=-fuse-ld={linker}"
    text = refused(packer("export", "m.so", "add.c", option, "--function", f"ad={TWO}"))
    assert text.endswith("; declared, but defined by no source, or as static: ad\n")


# ---- E14 to E18: what happens meanwhile, and around


def _with_compiler(path: str | Path) -> dict[str, str]:
    return os.environ | {"CC": str(path), "CXX": str(path)}


def _compiler(folder: Path, line: str) -> dict[str, str]:
    """An environment whose compiler runs a line of shell first."""
    script = folder / "compiler"
    script.write_text(f'#!/bin/sh\n{line}\nexec cc "$@"\n')
    script.chmod(0o755)
    return _with_compiler(script)


def test_source_that_changes_meanwhile_is_noticed(packer: Packer, tmp_path: Path) -> None:
    """E14: the compile runs on, but the output stays."""
    (tmp_path / "model.so").write_text("old")
    environment = _compiler(tmp_path, f"echo >> {tmp_path}/add.c")
    run = packer("export", "model.so", "add.c", "--function", ADD, env=environment)
    assert "add.c: was changed while it was exported; export again" in refused(run)
    assert (tmp_path / "model.so").read_text() == "old"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(packer: Packer, tmp_path: Path, closed: str) -> None:
    """E16: nothing that is printed ends up in a file that was opened instead."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND]
    arguments = ["export", "model.so", "add.c", "--function", ADD, "-v"]
    assert subprocess.run([*command, *arguments], cwd=tmp_path, check=False).returncode == 0
    assert subprocess.run([*command, "load", "nonesuch"], cwd=tmp_path, check=False).returncode == 1
    assert (tmp_path / "add.c").read_text() == CODE
    assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"


def test_reader_that_goes_away_is_no_error(packer: Packer, tmp_path: Path) -> None:
    """E16: EPIPE ends it as SIGPIPE would, without a word."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    reader, writer = os.pipe()
    os.close(reader)
    for arguments in (["load", "model.so"], ["--help"], ["export", "m.so", "add.c"]):
        command = [*COMMAND, *arguments]
        run = subprocess.run(
            command,
            cwd=tmp_path,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
        )
        assert (run.returncode, run.stderr) == (128 + signal.SIGPIPE, b"")
    os.close(writer)


def test_full_disk_under_stdout_is_reported(packer: Packer, tmp_path: Path) -> None:
    """E16: what could not be said is an error."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    with open("/dev/full", "w") as full:
        command = [*COMMAND, "load", "model.so"]
        run = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (
        run.returncode,
        run.stderr,
    ) == (1, b"packer: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_leaves_the_old_file(tmp_path: Path, packer: Packer, number: int, code: int) -> None:
    """E17: the compiler ends too, nothing is left, the exit code says which signal."""
    (tmp_path / "model.so").write_text("old")
    started, survived = tmp_path / "started", tmp_path / "survived"
    environment = _compiler(tmp_path, f"echo > {started}; sleep 3; echo > {survived}")
    command = [*COMMAND, "export", "model.so", "add.c", "--function", ADD]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (code, "") == (process.returncode, errors)
    assert (tmp_path / "model.so").read_text() == "old"
    time.sleep(3)
    assert sorted(os.listdir(tmp_path)) == ["add.c", "compiler", "model.so", "started"]


def test_signal_in_a_factory_is_not_its_error(tmp_path: Path, packer: Packer) -> None:
    """E17: user code that catches nothing does not turn SIGTERM into a message."""
    (tmp_path / "build.py").write_text(
        "import os, signal, time\ndef make():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(60)\n"
    )
    (tmp_path / "packer.toml").write_text("[module.b]\nkind='python'\nfactory='build.py:make'\n")
    run = packer("export", "m.so")
    assert (run.returncode, run.stderr) == (143, "")


def test_surroundings_do_not_change_the_bytes(packer: Packer, tmp_path: Path) -> None:
    """E18: locale, time zone and umask; the mode is what the umask leaves."""
    (tmp_path / "packer.toml").write_text(
        f"[module.m]\nkind = 'c'\nsources = ['add.c']\nimports = ['k']\nfunctions.add = '{TWO}'\n"
        "[module.k]\nkind = 'opencl'\nsources = ['k.cl']\n"
    )
    (tmp_path / "k.cl").write_text("// é", encoding="utf-8")
    digests = set()
    for locale, umask in (("C", 0o077), ("POSIX", 0), ("C.UTF-8", 0o022), ("tr_TR.UTF-8", 0o027)):
        environment = os.environ | {"LC_ALL": locale, "LANG": locale, "TZ": "Asia/Kathmandu"}
        done(packer("export", "m.so", env=environment, umask=umask))
        digests.add(digest(tmp_path / "m.so"))
        assert 0o777 & ~umask == (tmp_path / "m.so").stat().st_mode & 0o7777
        (tmp_path / "m.so").unlink()
    assert len(digests) == 1


def test_encoding_that_lacks_a_character_escapes_it(packer: Packer) -> None:
    """E18: an ASCII terminal gets ASCII."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    line = done(packer("export", "é.so", "add.c", "--function", ADD, env=environment))
    assert line.startswith("\\xe9.so: ")
    assert "\\xe9x.so" in refused(packer("load", "éx.so", env=environment))


def test_json_is_valid_for_hostile_names(packer: Packer, tmp_path: Path) -> None:
    """E20: whatever a path or a kernel is called."""
    (tmp_path / "k.cl").write_text("")
    (tmp_path / "packer.toml").write_text(
        f"[module.m]\nkind = 'c'\nsources = ['add.c']\nimports = ['k']\nfunctions.add = '{TWO}'\n"
        "[module.k]\nkind = 'opencl'\nsources = ['k.cl']\n"
        '[module.k.functions]\n"\\u001b[31m\\" \\u202e" = {}\n'
    )
    for name in ("\x1b[31m.so", "\x7f.so", '"quoted".so', "\udcff.so"):
        done(packer("export", name))
        text = done(packer("inspect", name, "--json"))
        assert text.isascii()
        assert "\x1b" not in text
        assert "add" in json.dumps(json.loads(text))
        shown = done(packer("inspect", name)) + done(packer("load", name))
        assert all(c.isprintable() or c == "\n" for c in shown)
