"""Wrong usage, help, the version, and errors of one line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import runtime

from ...support.command_line import ADD, Packer, done, refused

WRONG_USAGE = {
    "no command": (),
    "unknown command": ("exprot",),
    "unknown option": ("export", "--functio", ADD),
    "no value": ("export", "--function"),
    "no declaration": ("export", "m.so", "add.c", "--function", "add="),
    "twice": ("export", "m.so", "add.c", "--function", ADD, "--function", ADD),
    "function of a project": ("export", "m.so", "--function", ADD),
    "two projects": ("export", "m.so", "add.c", "--project", "packer.toml"),
    "embed": ("export", "m.so", "add.c", "--embed", "b"),
    "no library": ("load",),
    "option after the path": ("load", "m.so", "--quiet"),
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
    """The command shows the readable parts, with the errors."""
    blob = "const unsigned char __tvm_dev_mblob[9] = {1, 0, 0, 0, 0, 0, 0, 0, 0};"
    for options in ([], ["--json"]):
        run = packer("inspect", str(compile_library(blob)), *options)
        assert run.returncode == 1
        assert "a blob of 1 bytes, expected at least 8" in run.stdout
        assert run.stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        *("export", "link", "load", "inspect", "diff", "extract", "check", "doctor", "cache"),
        *("init", "keygen", "sign", "verify"),
    ],
)
def test_help_has_examples(packer: Packer, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command explains itself in lines that fit a terminal, and the first help names it."""
    monkeypatch.setenv("COLUMNS", "80")
    assert f"\n  {command} " in done(packer("--help"))
    text = done(packer(command, "--help"))
    assert "\nexamples:\n" in text
    assert f"  packer {command} " in text
    assert max(map(len, text.splitlines())) <= 80


def test_help_is_cheap(tmp_path: Path) -> None:
    """No help imports packages that only some exports need."""
    code = (
        "import sys; from packer.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print({'llvmlite', 'elftools', 'numpy', 'pycparser'} & set(sys.modules))"
    )
    commands = [
        "export",
        "link",
        "load",
        "inspect",
        "diff",
        "extract",
        "check",
        "doctor",
        "cache",
        "init",
    ]
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


def test_inspect_of_an_object_prints_how_to_link_it(packer: Packer, tmp_path: Path) -> None:
    """As for an archive and a tar; the command works. There is no report for --json."""
    for name in ("m.o", "a model.o", "m.a", "m.tar"):
        done(packer("export", name, "add.c", "--function", ADD))
        text = done(packer("inspect", name))
        assert text.startswith(f"{name}: ")
        command = text.split("`")[1]
        assert command == f"packer link {shlex.quote(name)} -o model.so"
        (tmp_path / "model.so").unlink(missing_ok=True)
        done(packer(*shlex.split(command)[1:]))
        assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"
        assert "packer link" in refused(packer("inspect", "--json", name), 1)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("exprot",), "export"),
        (("inpsect", "m.so"), "inspect"),
        (("export", "m.so", "add.c", "--functon", ADD), "--function"),
        (("export", "m.so", "add.c", "--functon=add=int(int)"), "--function"),
        (("export", "m.so", "add.c", "--functon=add=int(int a)"), "--function"),
        (("export", "-v", "--functon=add=int(int a)", "m.so", "add.c"), "--function"),
        (("load", "--profle", "m.so", "add"), "--profile"),
        (("inspect", "--jsno", "m.so"), "--json"),
        (("export", "m.so", "add.c", "--embed", "segmnt"), "segment"),
        (("inspect", "m.so", "--sort", "nam"), "name"),
    ],
)
def test_a_mistyped_word_has_near_names(packer: Packer, words: tuple[str, ...], near: str) -> None:
    """Of subcommands, options and choices; a word that is near none has none."""
    assert refused(packer(*words), 2).rstrip().endswith(f"; did you mean {near}?")


@pytest.mark.parametrize(
    "words", [("zzz",), ("inspect", "--zzz", "m.so"), ("export", "--embed", "z")]
)
def test_a_word_near_none_has_no_near_names(packer: Packer, words: tuple[str, ...]) -> None:
    """No guess is better than a wrong one."""
    assert "did you mean" not in refused(packer(*words), 2)
