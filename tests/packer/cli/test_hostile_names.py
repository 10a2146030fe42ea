"""Names with spaces, escapes and bytes of any kind are only names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ...support.command_line import ADD, TWO, Packer, done, refused

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
    """Names are accepted as output, source and library; they are printed escaped."""
    source, output = f"{name}.c", f"{name}.so"
    (tmp_path / "add.c").rename(tmp_path / source)
    line = done(packer("export", "--function", ADD, "--", output, source))
    assert all(c.isprintable() for c in line.removesuffix("\n"))
    assert sorted([source, output]) == sorted(os.listdir(tmp_path))
    assert done(packer("load", "-q", "--", output, "add", "40", "2")) == "42\n"
    assert all(c.isprintable() or c == "\n" for c in done(packer("load", "--", output)))


def test_hostile_folder_is_only_a_folder(packer: Packer, tmp_path: Path) -> None:
    """Everything below a hostile folder is handled: the project, its sources, the workspace."""
    for name in HOSTILE.values():
        folder = tmp_path / name
        done(packer("init", "--", name))
        run = packer("export", cwd=folder)
        assert "model.so: " in done(run)
        assert done(packer("load", "-q", "model.so", "add", "40", "2", cwd=folder)) == "42\n"


def test_hostile_text_in_errors_is_escaped(packer: Packer, tmp_path: Path) -> None:
    """No control character of a name, key or option reaches the terminal."""
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
        packer("export", f"add.c/{evil}/m.so", "add.c"),
        packer("export", "m.so", "add.c", "--function", f"{evil}=int(int)"),
        packer("export", "m.so", "add.c", "--function", f"add={evil}"),
        packer("export", "m.so", "add.c", "--entry", evil),
        packer("init", f"{evil}/new"),
    ):
        assert run.returncode in (1, 2)
        assert refused(run, run.returncode)
        assert not {"\x1b", "\x07"} & set(run.stderr + run.stdout)


def test_encoding_that_lacks_a_character_escapes_it(packer: Packer) -> None:
    """An ASCII terminal gets ASCII."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    line = done(packer("export", "é.so", "add.c", "--function", ADD, env=environment))
    assert line.startswith("\\xe9.so: ")
    assert "\\xe9x.so" in refused(packer("load", "éx.so", env=environment))


def test_json_is_valid_for_hostile_names(packer: Packer, tmp_path: Path) -> None:
    """The JSON is valid for any name of a path or a kernel."""
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
